"""What Kafka can do to the service: topics that refuse, are missing, grow or begin again, and brokers that are away."""

import time

from apns_standin import Answer
from contract import check_result
from kafka_gate import Gate
from kafka_io import committed
from waiting import until
from world import TOPICS, as_record, device_token, request

BLOCKED = 'martlet_output_blocked{topic="results"}'
#: How long the look-alike takes: requests are with APNs while the brokers change their mind.
LATE = Answer(delay=1.5)


def requests(first: int, count: int) -> list[dict]:
    return [request(device_token(number)) for number in range(first, first + count)]


def send(world, asked, partition: int | None = None) -> None:
    world.send([as_record(one, partition=partition) for one in asked])


def delivered(world, asked, most: int = 1) -> None:
    """Each has a result, and `most` of them at the most."""
    found = world.results.by_id([one["id"] for one in asked])
    for one in asked:
        assert {check_result(record)["status"] for record in found[one["id"]]} == {"delivered"}
        assert len(found[one["id"]]) <= most


def all_committed(world) -> int:
    offsets = committed(world.kafka.bootstrap, world.group, "push.requests", TOPICS["push.requests"])
    return sum(max(0, offset) for offset in offsets.values())


def test_a_topic_that_refuses_results_is_told_and_nothing_is_lost(world):
    martlet = world.martlet().wait_ready()
    send(world, first := requests(0, 20))
    delivered(world, first)
    until("it is committed", lambda: all_committed(world) == 20, 20)
    world.server.answer_by_default(LATE)
    send(world, asked := requests(100, 200))
    until("they are open", lambda: len(world.server.seen) == 220, 20)
    world.kafka.order("fail", "produce", "TOPIC_AUTHORIZATION_FAILED", 10_000)
    until("it is told", lambda: martlet.metrics().get(BLOCKED) == 1, 30)
    status, body = martlet.get("/readyz")
    assert status == 503
    assert "results takes no records" in body
    assert "Topic authorization failed" in body
    assert '"output_refused"' in martlet.text()
    time.sleep(2)
    assert all_committed(world) == 20, "nothing is committed past what has no result"
    world.kafka.order("pass", "produce")
    delivered(world, asked)
    until("it is over", lambda: martlet.metrics().get(BLOCKED) == 0, 30)
    martlet.wait_ready()
    until("it is committed", lambda: all_committed(world) == 220, 20)
    assert len(world.server.seen) == 220, "nothing was sent twice"
    assert martlet.terminate() == 0


def test_a_result_that_never_fits_holds_up_nobody(world):
    """It is refused in its batch, alone and shortened. Then it is given up, loudly, and the others go on."""
    martlet = world.martlet().wait_ready()
    send(world, requests(0, 1))
    world.results.count(1)
    world.server.answer_by_default(LATE)
    send(world, [lost := requests(1, 1)[0]])
    until("it is open", lambda: world.server.seen_for(lost["token"]), 20)
    world.kafka.order("fail", "produce", "MSG_SIZE_TOO_LARGE", 3)
    until("it is given up", lambda: martlet.text().count('"publication_refused"') == 2, 40)
    world.server.answer_by_default(Answer())
    send(world, asked := requests(2, 50))
    delivered(world, asked)
    until("all is committed", lambda: all_committed(world) == 52, 20)
    assert lost["id"] not in [record.json["id"] for record in world.results.records]
    assert martlet.terminate() == 0


def test_brokers_that_are_away_for_longer_than_a_record_may_wait(world):
    """Records time out in the client, are produced again, and get through in the end; the process stays."""
    world.kafka_settings["producerProperties"] = {"message.timeout.ms": 2000}
    # Longer than they are away: who is thrown out of the group sends again, as he must.
    world.kafka_properties["session.timeout.ms"] = 45_000
    martlet = world.martlet(retryBackoff={"max": "1s"}).wait_ready()
    send(world, first := requests(0, 10))
    delivered(world, first)
    world.server.answer_by_default(LATE)
    send(world, asked := requests(10, 200))
    until("they are open", lambda: len(world.server.seen) == 210, 20)
    world.kafka.order("broker", 1, "down")
    failures = 'martlet_publication_failures_total{topic="results"}'
    until("records time out", lambda: martlet.metrics().get(failures, 0) >= 200, 30)
    assert martlet.get("/healthz")[0] == 200
    world.kafka.order("broker", 1, "up")
    # What the broker had stored without getting to say so is stored again.
    delivered(world, asked, most=2)
    until("it is committed", lambda: all_committed(world) == 210, 40)
    assert len(world.server.seen) == 210, "nothing was sent twice"
    assert martlet.terminate() == 0


def test_a_producer_that_has_failed_for_good_is_replaced(world):
    """The broker says that records are missing before these: no idempotent producer survives that."""
    martlet = world.martlet().wait_ready()
    send(world, first := requests(0, 10))
    delivered(world, first)
    world.server.answer_by_default(LATE)
    send(world, asked := requests(10, 200))
    until("they are open", lambda: len(world.server.seen) == 210, 20)
    world.kafka.order("fail", "produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", 4)
    until("it is replaced", lambda: '"producer_replaced"' in martlet.text(), 30)
    world.kafka.order("pass", "produce")
    delivered(world, asked, most=2)
    until("it is committed", lambda: all_committed(world) == 210, 20)
    assert martlet.metrics()["martlet_producer_failures_total"] >= 1
    assert len(world.server.seen) == 210, "nothing was sent twice"
    assert martlet.terminate() == 0


def test_a_topic_that_comes_late_and_then_grows(world):
    """Requests' topic is not there at the start, appears with four partitions, and has eight later."""
    world.kafka_properties["topic.metadata.refresh.interval.ms"] = 500
    world.kafka.order("topic-error", "push.requests", "UNKNOWN_TOPIC_OR_PART")
    with Gate(world.kafka.bootstrap, shown_partitions={"push.requests": 4}) as gate:
        world.kafka_settings["brokers"] = gate.address
        martlet = world.martlet()
        until("the missing topic is told", lambda: "push.requests" in martlet.text(), 30)
        assert martlet.running

        def partitions() -> float:
            return martlet.metrics().get("martlet_assigned_partitions", 0) if martlet.get("/metrics")[0] else 0

        world.kafka.order("topic-error", "push.requests", "none")
        until("four partitions", lambda: partitions() == 4 + TOPICS["push.deferred"], 40)
        send(world, first := requests(0, 5), partition=3)
        delivered(world, first)
        gate.shown_partitions = {}
        until("eight partitions", lambda: partitions() == 8 + TOPICS["push.deferred"], 40)
        send(world, second := requests(5, 5), partition=7)
        delivered(world, second)
        assert len(world.server.seen) == 10
        assert martlet.terminate() == 0


def test_offsets_that_are_gone_are_told_and_read_again_from_the_start(world):
    """As after a topic was deleted and made anew: `earliest` means repeats, and no request is passed over."""
    martlet = world.martlet().wait_ready()
    send(world, requests(0, 20), partition=0)
    world.results.count(20)
    until("it is committed", lambda: all_committed(world) == 20, 20)
    # Whoever fetches next is told so, and only the service may.
    world.readers.pop("push.results").__exit__()
    world.kafka.order("fail", "fetch", "OFFSET_OUT_OF_RANGE")
    until("it is told", lambda: "Offset out of range" in martlet.text(), 20)
    send(world, later := requests(20, 5), partition=0)
    world.results.by_id([one["id"] for one in later])
    until("all is committed", lambda: all_committed(world) == 25, 20)
    assert martlet.terminate() == 0
