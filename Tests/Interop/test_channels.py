"""`martlet channels`: against the product's look-alike, and against a stand-in that follows Apple's page."""

import base64
import json

import pytest

from apns_standin import Answer
from processes import MockAPNs, find_binary, free_port
from test_command_line import CONFIGURATION, DATA, USAGE, configured, martlet
from world import World

UNAVAILABLE = 69
BUNDLE = "com.example.shop"


class ChannelService:
    """What Apple's page on channel management says, for one app, as answers of the stand-in."""

    def __init__(self) -> None:
        self.channels: dict[str, dict] = {}

    def __call__(self, seen) -> Answer:
        method, channel = seen.headers[":method"], seen.headers.get("apns-channel-id")
        match method, seen.path:
            case "POST", path if path == f"/1/apps/{BUNDLE}/channels":
                settings = json.loads(seen.body)
                if set(settings) != {"message-storage-policy", "push-type"} or channel is not None:
                    return Answer(400, "BadRequestPayload")
                made = base64.b64encode(f"channel {len(self.channels)}".encode()).decode()
                self.channels[made] = settings
                return Answer(201, body=b"", headers=(("apns-channel-id", made),))
            case "GET", path if path == f"/1/apps/{BUNDLE}/all-channels":
                return Answer(200, body=json.dumps({"channels": list(self.channels)}).encode())
            case "GET" | "DELETE", path if path == f"/1/apps/{BUNDLE}/channels":
                if seen.body or channel is None:
                    return Answer(400, "BadRequestParams")
                if channel not in self.channels:
                    return Answer(400, "ChannelNotRegistered")
                if method == "DELETE":
                    del self.channels[channel]
                    return Answer(204, body=b"")
                return Answer(200, body=json.dumps(self.channels[channel]).encode())
        return Answer(404, "BadPath")


@pytest.fixture(params=["stand-in", "mock-apns", "configuration"])
def channels(request, world: World, tmp_path):
    """Calls `martlet channels` with what it takes to reach a server that manages channels."""
    key = world.key()
    if request.param == "mock-apns":
        with MockAPNs(
            find_binary(), tmp_path / "mock.log", "--key", f"{key.file}:{key.key_id}:{key.team_id}", "--topic",
            f"{key.team_id}:{BUNDLE}",
        ) as mock:  # fmt: skip
            options = by_key(key, mock.port, mock.authority)
            yield lambda *arguments: martlet("channels", *arguments, *options)
        return
    world.server.methods |= {"GET", "DELETE"}
    world.server.answer_by_default(ChannelService())
    options = by_key(key, world.server.port, world.authority.authority)
    if request.param == "configuration":
        options = ["--config", configured(world), "--app", "shop-ios"]
    yield lambda *arguments: martlet("channels", *arguments, *options)
    assert not world.server.violations
    for seen in world.server.seen:
        # PyJWT has verified the token.
        assert (seen.claims["iss"], seen.claims["kid"]) == (key.team_id, key.key_id)


def by_key(key, port, authority, bundle=BUNDLE):
    return [
        "--p8", key.file, "--key-id", key.key_id, "--team-id", key.team_id, "--topic", bundle, "--host", "localhost",
        "--port", port, "--ca", authority,
    ]  # fmt: skip


def test_a_channel_from_its_making_to_its_end(channels):
    ended = channels("list")
    assert (ended.returncode, ended.stdout) == (0, ""), ended
    made = channels("create", "--store")
    assert made.returncode == 0, made.stderr
    first = made.stdout.strip()
    assert base64.b64decode(first, validate=True)
    second = json.loads(channels("create", "--json").stdout)
    assert second["stores_messages"] is False
    assert second["channel"] != first
    assert channels("list").stdout.split() == [first, second["channel"]]
    shown = channels("show", first, second["channel"], "--json").stdout.splitlines()
    assert [json.loads(line) for line in shown] == [
        {"channel": first, "stores_messages": True, "push_type": "LiveActivity"},
        {"channel": second["channel"], "stores_messages": False, "push_type": "LiveActivity"},
    ]
    assert channels("show", first).stdout == f"{first}: LiveActivity, keeps the latest message\n"
    assert channels("delete", first).stdout == f"deleted {first}\n"
    assert json.loads(channels("list", "--json").stdout) == {"channels": [second["channel"]]}
    gone = channels("show", first)
    assert gone.returncode == DATA
    assert f"show {first}: 400 ChannelNotRegistered" in gone.stderr


def test_what_goes_wrong_is_said(world):
    key = world.key()
    world.server.methods |= {"GET", "DELETE"}
    options = by_key(key, world.server.port, world.authority.authority)
    for answer, code, words in [
        (Answer(403, "TopicMismatch"), CONFIGURATION, "403 TopicMismatch"),
        (Answer(400, "CannotCreateChannelConfig"), DATA, "400 CannotCreateChannelConfig"),
        (Answer(429, "TooManyRequests"), UNAVAILABLE, "429 TooManyRequests"),
        (Answer(503, "Service Unavailable"), UNAVAILABLE, "503 ServiceUnavailable"),
        (Answer(201, body=b""), UNAVAILABLE, "201, but no apns-channel-id"),
        (Answer(reset=2), UNAVAILABLE, "the channel may have been made"),
    ]:
        world.server.answer_by_default(answer)
        ended = martlet("channels", "create", *options)
        assert (ended.returncode, words in ended.stderr) == (code, True), (words, ended)
    port = free_port()
    ended = martlet("channels", "list", *by_key(key, port, world.authority.authority))
    assert ended.returncode == UNAVAILABLE
    assert f"connect to 127.0.0.1:{port}: Connection refused" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["remove"], "did you mean"),
        ([], "say what to do: create, list, show, delete"),
        (["show"], "needs the id of a channel"),
        (["show", "no/base64!"], "is no channel's id"),
        (["list", "dHN0"], "takes no channel"),
        (["list", "--store"], "belongs to 'create'"),
        (["list", "--p8", "x"], "is missing"),
    ],
)
def test_usage_is_explained(arguments, words):
    ended = martlet("channels", *arguments)
    assert ended.returncode == USAGE
    assert words in ended.stderr or arguments == ["remove"]


def test_a_broadcast_goes_to_a_channel_that_was_made(world, tmp_path):
    key = world.key()
    with MockAPNs(find_binary(), tmp_path / "mock.log", "--key", f"{key.file}:{key.key_id}:{key.team_id}") as mock:
        options = by_key(key, mock.port, mock.authority)
        channel = martlet("channels", "create", *options).stdout.strip()
        send = ["--aps", '{"event":"update","timestamp":1,"content-state":{}}', "--expiration", "0", "--json"]
        ended = martlet("send", "--channel", channel, *send, *options)
        assert ended.returncode == 0, (ended.stdout, ended.stderr)
        assert json.loads(ended.stdout)["channel"] == channel
        assert martlet("channels", "delete", channel, *options).returncode == 0
        martlet("channels", "create", *options)
        ended = martlet("send", "--channel", channel, *send, *options)
        assert ended.returncode == DATA
        assert json.loads(ended.stdout)["reason"] == "ChannelNotRegistered"
