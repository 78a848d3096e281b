"""SIGTERM: what is open is finished, published and committed, and nothing of it is sent again."""

import json
import time

from apns_standin import Answer
from contract import check_result
from kafka_io import committed
from waiting import until
from world import TOPICS, as_record, device_token, request


def committed_records(world) -> int:
    """How many records of the request topic the group has behind it."""
    offsets = committed(world.kafka.bootstrap, world.group, "push.requests", TOPICS["push.requests"])
    return sum(offset for offset in offsets.values() if offset > 0)


def test_open_requests_are_finished_and_never_sent_again(world):
    first = world.martlet().wait_ready()
    world.send([as_record(request(device_token(0)))])
    world.results.count(1)
    world.server.answer_by_default(Answer(delay=2))
    fields = [request(device_token(number)) for number in range(1, 201)]
    world.send([as_record(one) for one in fields])
    until("all are open", lambda: len(world.server.seen) == 201, 30)

    assert first.terminate() == 0, first.tail()
    records = world.results.count(201, timeout=10)
    assert {check_result(record)["status"] for record in records} == {"delivered"}
    assert committed_records(world) == 201
    assert all(code == 0 for _, code in world.server.partings), "connections were closed in good order"
    assert world.server.partings, "APNs was told with GOAWAY"

    world.server.answer_by_default(Answer())
    second = world.martlet().wait_ready()
    world.send([as_record(request(device_token(999), id="afterwards"))])
    world.results.by_id(["afterwards"])
    assert len(world.server.seen) == 202, "nothing was sent a second time"
    assert len(world.results.records) == 202
    assert second.terminate() == 0


def test_what_is_never_answered_does_not_hold_the_exit(world):
    """The drain has an end; what had no answer by then is not committed, and is sent again by the next process."""
    first = world.martlet(drainTimeout="2s", requestTimeout="60s").wait_ready()
    world.send([as_record(request(device_token(0)))])
    world.results.count(1)
    world.server.answer_by_default(Answer(silent=True))
    silent = [request(device_token(number)) for number in range(1, 51)]
    world.send([as_record(one) for one in silent])
    until("all are open", lambda: len(world.server.seen) == 51, 30)
    assert first.terminate(20) == 0, first.tail()
    assert len(world.results.count(1)) == 1

    world.server.answer_by_default(Answer())
    world.martlet().wait_ready()
    found = world.results.by_id([one["id"] for one in silent])
    for one in silent:
        assert [check_result(record)["status"] for record in found[one["id"]]] == ["delivered"]
        assert len({seen.headers["apns-id"] for seen in world.server.seen_for(one["token"])}) == 1


def test_a_second_signal_ends_it_at_once(world):
    martlet = world.martlet(drainTimeout="60s", requestTimeout="60s").wait_ready()
    world.server.answer_by_default(Answer(silent=True))
    world.send([as_record(request(device_token(1)))])
    until("it is open", lambda: world.server.seen, 20)
    martlet.process.terminate()
    until("it drains", lambda: martlet.get("/readyz")[0] in (0, 503), 10)
    assert martlet.running
    martlet.process.terminate()
    martlet.wait(5)


def test_secrets_and_payloads_stay_out_of_the_log(world):
    world.martlet().wait_ready()
    token = "feedfacecafebeef" * 4
    world.server.answer(token, Answer(403, "InvalidProviderToken"))
    world.server.answer(device_token(2), Answer(503, "ServiceUnavailable"), Answer())
    marked = {"aps": {"alert": "a payload that nobody else may read"}}
    world.send(
        [
            as_record(request(token, payload=marked)),
            as_record(request(device_token(2), payload=marked)),
            as_record({**request(token, payload=marked), "priority": 7}),
        ]
    )
    world.results.count(3)
    (martlet,) = (program for program in world.programs if program.command[1] == "run")
    assert martlet.terminate() == 0
    text = martlet.text()
    assert text, "it says something"
    for secret in ("nobody else may read", token, "eyJ", "PRIVATE KEY", world.key().file.read_text().split("\n")[1]):
        assert secret not in text
    for line in text.splitlines():
        if line.startswith("{"):
            json.loads(line)


def test_brokers_that_are_gone_are_waited_for_asleep(world):
    """The last commit and the farewell to the group get no answer; the loop looks up now and then, and no more."""
    martlet = world.martlet(drainTimeout="1s").wait_ready()
    world.send([as_record(request(device_token(number))) for number in range(50)])
    world.results.count(50, quiet=0)
    world.server.answer_by_default(Answer(delay=0.3))
    world.send([as_record(request(device_token(number))) for number in range(50, 100)])
    until("they are open", lambda: len(world.server.seen) == 100, 20)
    world.kafka.order("broker", 1, "down")
    martlet.process.terminate()
    time.sleep(2.2)
    before = martlet.processor_seconds("delivery")
    time.sleep(3)
    assert martlet.processor_seconds("delivery") - before < 0.3
    assert martlet.wait() == 0
    world.kafka.order("broker", 1, "up")
