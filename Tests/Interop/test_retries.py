"""What is sent again, how, and what each of Apple's reasons leads to."""

import collections
import time
from pathlib import Path

import pytest

from apns_standin import Answer
from contract import EVENT_REASONS, check_event, check_result
from waiting import until
from world import as_record, device_token, request

#: Every reason of Apple's table of responses, by status.
REASONS = {
    400: [
        "BadCollapseId", "BadDeviceToken", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic",
        "DeviceTokenNotForTopic", "DuplicateHeaders", "IdleTimeout", "InvalidPushType", "MissingDeviceToken",
        "MissingTopic", "PayloadEmpty", "TopicDisallowed",
    ],
    403: [
        "BadCertificate", "BadCertificateEnvironment", "ExpiredProviderToken", "Forbidden", "InvalidProviderToken",
        "MissingProviderToken", "UnrelatedKeyIdInToken", "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken",
    ],
    404: ["BadPath"],
    405: ["MethodNotAllowed"],
    410: ["ExpiredToken", "Unregistered"],
    413: ["PayloadTooLarge"],
    429: ["TooManyProviderTokenUpdates", "TooManyRequests"],
    500: ["InternalServerError"],
    503: ["ServiceUnavailable", "Shutdown"],
}  # fmt: skip
#: Those after which the same request may be sent again unchanged.
RETRIED = {
    "IdleTimeout", "ExpiredProviderToken", "UnrelatedKeyIdInToken", "TooManyProviderTokenUpdates", "TooManyRequests",
    "InternalServerError", "ServiceUnavailable", "Shutdown",
}  # fmt: skip

#: Apple's page has one spelling and its servers send the other; a result may have either.
SPELLINGS = {"BadEnvironmentKeyInToken": "BadEnvironmentKeyIdInToken"}


def test_each_reason_leads_where_apple_says(world):
    """One app for each reason, so that what an app's credentials have earned does not touch the others."""
    cases = [(status, reason) for status, reasons in REASONS.items() for reason in reasons]
    cases += [(418, "BrandNewReason"), (502, "AnotherNewReason")]
    fields = {}
    for number, (status, reason) in enumerate(cases):
        world.app(f"app-{number}", f"com.example.app{number}")
        first = Answer(status, reason, timestamp=1_783_245_053_444 if status == 410 else None)
        world.server.answer(device_token(number), first, Answer())
        fields[reason] = request(device_token(number), app=f"app-{number}")
    world.martlet().wait_ready(60)
    world.send([as_record(one) for one in fields.values()])
    found = world.results.by_id([one["id"] for one in fields.values()], timeout=90)

    for status, reason in cases:
        (record,) = found[fields[reason]["id"]]
        result = check_result(record)
        posts = world.server.seen_for(fields[reason]["token"])
        assert len({seen.headers["apns-id"] for seen in posts}) == 1, reason
        if reason in RETRIED or status >= 500:
            assert (result["status"], result["attempts"], len(posts)) == ("delivered", 2, 2), (reason, result)
        else:
            told = SPELLINGS.get(result["reason"], result["reason"])
            assert (result["status"], result["http_status"], told) == (
                "rejected",
                status,
                SPELLINGS.get(reason, reason),
            )
            assert (result["attempts"], len(posts)) == (1, 1), (reason, result)

    events = [check_event(record) for record in world.events.count(len(EVENT_REASONS))]
    assert {event["reason"] for event in events} == EVENT_REASONS
    for event in events:
        when = 1_783_245_053_444 if event["reason"] in ("ExpiredToken", "Unregistered") else None
        assert event["unregistered_at"] == when, event


def test_503_then_200(world):
    world.martlet().wait_ready()
    token = device_token(1)
    world.server.answer(token, Answer(503, "ServiceUnavailable"), Answer())
    world.send([as_record(request(token))])
    (record,) = world.results.count(1)
    result = check_result(record)
    assert (result["status"], result["attempts"]) == ("delivered", 2)
    first, second = world.server.seen
    assert first.headers["apns-id"] == second.headers["apns-id"] == result["apns_id"]
    assert first.body == second.body


def test_a_stream_that_is_reset_is_sent_again(world):
    world.martlet().wait_ready()
    codes = {"PROTOCOL_ERROR": 1, "INTERNAL_ERROR": 2, "REFUSED_STREAM": 7, "CANCEL": 8, "ENHANCE_YOUR_CALM": 11}
    tokens = {name: device_token(code) for name, code in codes.items()}
    for name, code in codes.items():
        world.server.answer(tokens[name], Answer(reset=code), Answer())
    world.send([as_record(request(token)) for token in tokens.values()])
    records = world.results.count(len(codes))
    assert {check_result(record)["status"] for record in records} == {"delivered"}
    for name, token in tokens.items():
        posts = world.server.seen_for(token)
        assert len(posts) == 2, name
        assert len({seen.headers["apns-id"] for seen in posts}) == 1, name


@pytest.mark.parametrize("code", [0, 2])
def test_after_goaway_another_connection_is_used_at_once(world, code):
    """The old socket stays open. What it had is sent again elsewhere, and nothing new goes there."""
    world.martlet().wait_ready()
    world.send([as_record(request(device_token(1)))])
    world.results.count(1)
    (before,) = world.server.seen

    world.server.answer(device_token(2), Answer(goaway=code, reason="Shutdown"), Answer())
    world.send([as_record(request(device_token(2)))])
    world.results.until("the second result", lambda records: len(records) == 2, 10)
    told, again = world.server.seen_for(device_token(2))
    assert told.connection == before.connection
    assert again.connection != told.connection
    assert again.headers["apns-id"] == told.headers["apns-id"]
    assert again.at - told.at < 5

    world.send([as_record(request(device_token(number))) for number in range(3, 53)])
    records = world.results.count(52)
    assert {check_result(record)["status"] for record in records} == {"delivered"}
    assert told.connection not in {seen.connection for seen in world.server.seen[3:]}
    assert not [late for late in world.server.ignored_after_goaway if late[1] > again.at], (
        "no new stream on the old one"
    )


def test_an_answer_that_never_comes_is_bounded(world):
    world.martlet(requestTimeout="1s").wait_ready()
    token = device_token(1)
    world.server.answer(token, Answer(silent=True), Answer())
    world.send([as_record(request(token))])
    (record,) = world.results.count(1, timeout=20)
    result = check_result(record)
    assert (result["status"], result["attempts"]) == ("delivered", 2)
    assert len({seen.headers["apns-id"] for seen in world.server.seen}) == 1


def test_attempts_end(world):
    """Trouble that lasts ends as failed, after as many attempts as are configured, and others go on meanwhile."""
    world.martlet(attempts=2).wait_ready()
    world.server.answer(device_token(1), Answer(reset=2))
    world.send([as_record(request(device_token(number))) for number in range(1, 101)])
    records = world.results.count(100)
    by_token = {record.json["token"]: check_result(record) for record in records}
    failed = by_token.pop(device_token(1))
    assert (failed["status"], failed["attempts"]) == ("failed", 2)
    assert {result["status"] for result in by_token.values()} == {"delivered"}
    assert len(world.server.seen_for(device_token(1))) == 2
    assert not world.events.poll(0.5)


def test_what_has_expired_is_not_sent(world):
    """Requests whose time passed while the service was not there end as expired; 0 is not such a time."""
    late = [request(device_token(number), expiration=int(time.time()) - 5) for number in range(50)]
    once = request(device_token(99), expiration=0)
    world.app()
    world.send([as_record(one) for one in [*late, once]])
    world.martlet().wait_ready()
    found = world.results.by_id([one["id"] for one in [*late, once]])
    for one in late:
        assert check_result(found[one["id"]][0])["status"] == "expired"
    assert check_result(found[once["id"]][0])["status"] == "delivered"
    assert [seen.token for seen in world.server.seen] == [device_token(99)]


def test_a_body_in_pieces_and_odd_bodies(world):
    """An error's body in three DATA frames; bodies that are empty, not JSON, or have a reason with a blank."""
    world.martlet().wait_ready()
    answers = {
        "pieces": Answer(400, "BadDeviceToken", pieces=3),
        "blank": Answer(410, body=b'{"timestamp":1783245053444,"reason":"Unregistered "}'),
        "empty": Answer(400, body=b""),
        "page": Answer(404, body=b"<html>Not Found</html>"),
        "long": Answer(400, body=b'{"reason":"' + b"x" * 60_000 + b'"}', pieces=4),
    }
    tokens = {name: device_token(number) for number, name in enumerate(answers)}
    for name, answer in answers.items():
        world.server.answer(tokens[name], answer)
    world.send([as_record(request(token)) for token in tokens.values()])
    records = world.results.count(len(answers))
    results = {record.json["token"]: check_result(record) for record in records}
    for name, answer in answers.items():
        result = results[tokens[name]]
        assert (result["status"], result["http_status"]) == ("rejected", answer.status), name
    assert results[tokens["pieces"]]["reason"] == "BadDeviceToken"
    assert results[tokens["blank"]]["reason"] == "Unregistered"
    assert len(str(results[tokens["long"]]["reason"])) < 1000
    assert results[tokens["page"]]["message"] == "<html>Not Found</html>"
    assert "message" not in results[tokens["empty"]]
    events = {record.json["token"]: check_event(record)["reason"] for record in world.events.count(2)}
    assert events == {tokens["pieces"]: "BadDeviceToken", tokens["blank"]: "Unregistered"}


def test_trouble_that_lasts_is_parked_and_sent_again_later(world):
    """Two quick repeats, then the long wait on the deferred topic; other devices of the app notice nothing."""
    world.martlet(retryBackoff={"initial": "50ms", "max": "100ms", "lasting": "31s"}).wait_ready()
    answers = {device_token(1): Answer(503, "ServiceUnavailable"), device_token(2): Answer(429, "TooManyRequests")}
    for token, answer in answers.items():
        world.server.answer(token, *[answer] * 3, Answer())
    world.send([as_record(request(device_token(number))) for number in range(1, 101)])
    world.results.count(98, timeout=20)
    assert len(world.reader("push.deferred").count(2, timeout=20)) == 2
    records = world.results.count(100, timeout=90)
    by_token = {record.json["token"]: check_result(record) for record in records}
    assert {result["status"] for result in by_token.values()} == {"delivered"}
    for token in answers:
        posts = world.server.seen_for(token)
        assert (by_token[token]["attempts"], len(posts)) == (4, 4)
        assert len({seen.headers["apns-id"] for seen in posts}) == 1
        assert posts[2].at - posts[0].at < 10 < 30 < posts[3].at - posts[2].at


def test_one_throttled_device_slows_no_other(world):
    world.martlet().wait_ready()
    world.server.answer(device_token(1), *[Answer(429, "TooManyRequests")] * 2, Answer())
    world.send([as_record(request(device_token(number))) for number in range(1, 501)])
    records = world.results.count(500, timeout=60)
    assert {check_result(record)["status"] for record in records} == {"delivered"}
    posts = world.server.seen_for(device_token(1))
    assert len(posts) == 3
    assert len({seen.headers["apns-id"] for seen in posts}) == 1


def test_what_is_for_a_throttled_device_waits(world):
    """Three more for a device that is throttled for two seconds, among others."""
    world.martlet().wait_ready()
    world.server.answer(device_token(1), Answer(429, "TooManyRequests", headers=(("retry-after", "2"),)), Answer())
    world.send([as_record(request(device_token(1)))])
    until("it is throttled", lambda: world.server.seen_for(device_token(1)), 30)
    time.sleep(0.3)
    world.send([as_record(request(device_token(number))) for number in [1, 2, 1, 3, 1, 4]])
    until("the others went on", lambda: len(world.server.seen) >= 4, 30)
    assert len(world.server.seen_for(device_token(1))) == 1
    records = world.results.count(7, timeout=60)
    assert {check_result(record)["status"] for record in records} == {"delivered"}
    posts = world.server.seen_for(device_token(1))
    assert len(posts) == 5
    assert posts[1].headers["apns-id"] == posts[0].headers["apns-id"]


def test_a_server_that_is_not_trusted_gets_nothing(world):
    """Without the right authority the handshake fails: no request goes out, and no token is blamed."""
    other = world.directory / "other"
    other.mkdir()
    authority = type(world.authority)(other).authority
    world.key()
    world.app(server={"host": "localhost", "port": world.server.port, "caFile": str(authority)})
    martlet = world.martlet(attempts=2)
    world.send([as_record(request(device_token(1), expiration=int(time.time()) + 6))])
    (record,) = world.results.count(1, timeout=60)
    assert check_result(record)["status"] in {"expired", "failed"}
    assert not world.server.seen
    assert not world.events.poll(0.3)
    assert martlet.running
    until("the service still answers", lambda: martlet.get("/healthz")[0] == 200, 5)


def test_descriptors_and_memory_stay_level_over_reconnects_and_errors(world):
    """A connection is told to go away after each 150 requests, and every tenth answer is an error."""
    served = collections.Counter()

    def decide(seen):
        served[seen.connection] += 1
        if served[seen.connection] % 150 == 0:
            return Answer(goaway=0, reason="Shutdown")
        return Answer(400, "BadDeviceToken") if served[seen.connection] % 10 == 0 else Answer()

    martlet = world.martlet().wait_ready()
    world.server.answer_by_default(decide)
    levels = []
    for number in range(5):
        world.send([as_record(request(device_token(3000 * number + index))) for index in range(3000)])
        world.results.count(3000 * (number + 1), timeout=90)
        levels.append((len(list(Path(f"/proc/{martlet.pid}/fd").iterdir())), martlet.resident_bytes()))
    assert world.server.connections > 90
    assert levels[-1][0] <= levels[0][0] + 4, levels
    assert levels[-1][1] < levels[1][1] * 1.2, levels
