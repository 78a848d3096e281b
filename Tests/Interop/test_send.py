"""`martlet send`: against the product's look-alike, and against the stand-in, whose tokens PyJWT judges."""

import json
import time

import pytest

from apns_standin import Answer
from credentials import make_push_certificate
from processes import MockAPNs, find_binary, free_port
from test_command_line import CONFIGURATION, DATA, USAGE, configured, martlet
from world import device_token

UNAVAILABLE = 69
TOKEN = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad"


def by_key(world, *arguments, topic="com.example.shop"):
    """Sends with the world's signing key, without a configuration."""
    key = world.key()
    return martlet(
        "send", "--p8", key.file, "--key-id", key.key_id, "--team-id", key.team_id, "--topic", topic,
        "--host", "localhost", "--port", world.server.port, "--ca", world.authority.authority, *arguments,
    )  # fmt: skip


def answers(ended):
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_every_option_reaches_apns(world):
    ended = by_key(
        world, "--token", TOKEN, "--alert", "Shipped", "--title", "Order", "--badge", "0", "--sound", "ping",
        "--custom", '{"n": 1.0}', "--push-type", "alert", "--priority", "5", "--expiration", "+1h", "--collapse-id",
        "order-42", "--id", "5F0C6A2E-1111-4222-8333-944455556666", "--json",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    [answer] = answers(ended)
    assert answer["status"] == "delivered"
    assert answer["token"] == TOKEN
    [seen] = world.server.seen
    assert seen.headers["apns-id"] == "5f0c6a2e-1111-4222-8333-944455556666" == answer["apns_id"]
    assert seen.headers["apns-topic"] == "com.example.shop"
    assert seen.headers["apns-push-type"] == "alert"
    assert seen.headers["apns-priority"] == "5"
    assert seen.headers["apns-collapse-id"] == "order-42"
    assert 3500 < int(seen.headers["apns-expiration"]) - time.time() < 3700
    assert seen.body == b'{"aps":{"alert":{"body":"Shipped","title":"Order"},"badge":0,"sound":"ping"},"n":1.0}'
    # The stand-in has had PyJWT verify the signature with the public key.
    assert seen.claims["iss"] == world.key().team_id
    assert seen.claims["kid"] == world.key().key_id
    assert abs(seen.claims["iat"] - time.time()) < 600
    assert not world.server.violations


def test_many_tokens_share_one_connection_and_keep_to_its_streams(world):
    tokens = [device_token(number) for number in range(300)]
    ended = by_key(world, "--json", "--alert", "x", *(part for token in tokens for part in ("--token", token)))
    assert ended.returncode == 0, ended.stderr
    assert sorted(answer["token"] for answer in answers(ended)) == sorted(tokens)
    assert len({answer["apns_id"] for answer in answers(ended)}) == len(tokens)
    assert world.server.connections == 1
    assert not world.server.violations, "one stream until the first good answer, then as many as SETTINGS say"


def test_a_payload_goes_out_as_it_stands(world):
    payload = '{ "aps" : {"alert":"\\u00e9"} ,"big": 1e400 }'
    path = world.directory / "push.json"
    path.write_text(payload + "\n")
    assert by_key(world, "--token", TOKEN, "--payload", path).returncode == 0
    key = world.key()
    ended = martlet(
        "send", "--p8", key.file, "--key-id", key.key_id, "--team-id", key.team_id, "--topic", "com.example.shop.voip",
        "--host", "localhost", "--port", world.server.port, "--ca", world.authority.authority, "--token-base64",
        "dA9HBw==", "--payload", "-", text_in=payload,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    file, piped = world.server.seen
    assert file.body == piped.body == payload.encode()
    assert piped.token == "740f4707"
    assert (piped.headers["apns-push-type"], piped.headers["apns-topic"]) == ("voip", "com.example.shop.voip")


def test_an_app_of_the_configuration_sends(world):
    path = configured(world)
    ended = martlet("send", "--config", path, "--app", "shop-ios", "--token", TOKEN, "--content-available")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("✓ 740f…78ad: delivered, apns-id ")
    [seen] = world.server.seen
    assert (seen.headers["apns-push-type"], seen.headers["apns-priority"]) == ("background", "5")


def test_the_exit_code_tells(world):
    world.key()
    dead, wrong = device_token(1), device_token(2)
    world.server.answer(dead, Answer(410, "Unregistered", timestamp=1790000000123))
    world.server.answer(wrong, Answer(400, "TopicDisallowed"))
    ended = by_key(world, "--alert", "x", "--token", dead, "--token", TOKEN)
    assert ended.returncode == DATA
    assert "410 Unregistered since 2026-09-21T14:13:20.123Z" in ended.stdout
    assert "1 of 2 delivered" in ended.stdout
    ended = by_key(world, "--alert", "x", "--token", dead, "--token", wrong)
    assert ended.returncode == CONFIGURATION
    assert "may not send to this topic" in ended.stdout
    ended = by_key(world, "--alert", "x", "--token", "abc")
    assert ended.returncode == DATA
    assert "--token: must be an even number of hex digits" in ended.stderr
    assert "nothing was sent" in ended.stderr
    assert by_key(world, "--alert", "x").returncode == USAGE


def test_what_may_pass_is_tried_again_with_the_same_id(world):
    world.key()
    world.server.answer(TOKEN, Answer(503, "ServiceUnavailable"), Answer(goaway=0), Answer(500), Answer(200))
    ended = by_key(world, "--alert", "x", "--token", TOKEN, "--attempts", "5", "--json", "-v")
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    assert answers(ended)[0]["attempts"] >= 3
    assert len({seen.headers["apns-id"] for seen in world.server.seen_for(TOKEN)}) == 1
    assert "* 503 ServiceUnavailable; again in " in ended.stderr
    world.server.answer(TOKEN, *[Answer(500)] * 9)
    ended = by_key(world, "--alert", "x", "--token", TOKEN, "--attempts", "2", "--json")
    assert ended.returncode == UNAVAILABLE
    assert answers(ended)[0]["attempts"] == 2
    assert answers(ended)[0]["status"] == "failed"


def test_what_cannot_be_reached_is_said(world):
    port = free_port()
    key = world.key()
    ended = martlet(
        "send", "--p8", key.file, "--key-id", key.key_id, "--team-id", key.team_id, "--topic", "t", "--host",
        "localhost", "--port", port, "--alert", "x", "--token", TOKEN, "--attempts", "2",
    )  # fmt: skip
    assert ended.returncode == UNAVAILABLE
    assert f"connect to 127.0.0.1:{port}: Connection refused" in ended.stdout
    ended = martlet(
        "send", "--p8", key.file, "--key-id", key.key_id, "--team-id", key.team_id, "--topic", "t", "--host",
        "localhost", "--port", world.server.port, "--alert", "x", "--token", TOKEN,
    )  # fmt: skip
    assert ended.returncode == UNAVAILABLE
    assert "certificate refused" in ended.stdout


def test_silence_is_not_waited_for_for_ever(world):
    world.key()
    world.server.answer(TOKEN, Answer(silent=True), Answer(200))
    ended = by_key(world, "--alert", "x", "--token", TOKEN, "--timeout", "1s", "--attempts", "1")
    assert ended.returncode == UNAVAILABLE
    assert "APNs did not answer in time; it may have taken it" in ended.stdout
    world.server.answer(TOKEN, Answer(silent=True), Answer(200))
    ended = by_key(world, "--alert", "x", "--token", TOKEN, "--timeout", "2s", "--json")
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    assert answers(ended)[0]["attempts"] == 2


def test_verbose_shows_everything_but_secrets(world):
    ended = by_key(world, "--alert", "secret words", "--token", TOKEN, "-v")
    assert ended.returncode == 0, ended.stderr
    [seen] = world.server.seen
    for line in [
        "> 1 :path: /3/device/740f…78ad", "> 1 apns-topic: com.example.shop", "> 1 apns-push-type: alert",
        "< 1 :status: 200",
    ]:  # fmt: skip
        assert line in ended.stderr.splitlines(), ended.stderr
    token = seen.headers["authorization"].removeprefix("bearer ")
    for secret in [token, token.split(".")[2], TOKEN, "secret words"]:
        assert secret not in ended.stderr + ended.stdout


@pytest.mark.parametrize("form", ["p12", "pem", "two files"])
def test_a_certificate_names_its_topic(tmp_path, form):
    made = make_push_certificate(tmp_path, "com.example.legacy")
    options = {
        "p12": ["--certificate", made.p12, "--password-file", made.password_file],
        "pem": ["--certificate", made.both],
        "two files": ["--certificate", made.certificate, "--key", made.key],
    }[form]
    with MockAPNs(find_binary(), tmp_path / "mock.log", "--client-ca", str(made.authority)) as mock:
        server = ["--host", "localhost", "--port", mock.port, "--ca", mock.authority]
        ended = martlet("send", *options, *server, "--token", TOKEN, "--alert", "x", "--json")
        assert ended.returncode == 0, (ended.stdout, ended.stderr)
        assert answers(ended)[0]["topic"] == "com.example.legacy"
        ended = martlet("send", *options, *server, "--token", TOKEN, "--alert", "x", "--topic", "com.example.other")
        assert ended.returncode == CONFIGURATION, (ended.stdout, ended.stderr)
