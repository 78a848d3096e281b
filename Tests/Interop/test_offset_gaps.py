"""Offsets that are no records: markers of transactions, what was aborted, and what compaction took away."""

from kafka_log import PartitionLog
from waiting import until
from world import World, as_record, device_token, request

PARTITIONS = 8


def values(numbers) -> list[bytes]:
    return [as_record(request(device_token(number), id=f"request-{number}")).value for number in numbers]


def fill(log: PartitionLog, first: int) -> tuple[set[int], set[int]]:
    """Four kinds of gap in one partition, the last one at its end; the requests that count, and those that do not."""
    for number in range(first, first + 6):
        log.write_in_transaction(1, values([number]))
    log.end_transaction(1, commits=True)
    log.write_in_transaction(2, values(range(first + 6, first + 9)))
    log.end_transaction(2, commits=False)
    log.write_in_transaction(3, values(range(first + 9, first + 12)))
    log.end_transaction(3, commits=True)
    return {*range(first, first + 6), *range(first + 9, first + 12)}, set(range(first + 6, first + 9))


def at_rest(world: World, martlet) -> None:
    """All is committed up to the end of each log, and nothing is shown as open."""
    logs = world.broker.logs["push.requests"]
    ends = {number: log.end for number, log in enumerate(logs)}

    def committed() -> dict[int, int]:
        return {number: max(0, at) for number, at in world.broker.committed(world.group, "push.requests").items()}

    until(f"commits reach the ends: {ends}, not {committed()}", lambda: committed() == ends, 20)

    def lag() -> float:
        series = martlet.metrics()
        return sum(value for name, value in series.items() if name.startswith("martlet_consumer_lag_records{"))

    until("no lag", lambda: lag() == 0, 10)
    shown = martlet.metrics()
    assert sum(value for name, value in shown.items() if name.startswith("martlet_in_flight_notifications")) == 0
    assert not any(value for name, value in shown.items() if name.startswith("martlet_paused_partitions"))


def test_gaps_are_passed_and_nothing_counts_as_open(world):
    broker = world.broker
    counted, aborted = set(), set()
    logs = broker.logs["push.requests"]
    for number in range(PARTITIONS):
        good, bad = broker.do(lambda number=number: fill(logs[number], 100 * number))
        counted |= good
        aborted |= bad
    # Compaction: some records in the midst of a batch and its last one, all of a batch, and the first of a log.
    world.send([as_record(request(device_token(9000 + n), id=f"request-{9000 + n}"), partition=0) for n in range(40)])
    plain = range(logs[0].end - 40, logs[0].end)
    gone = {plain[0], plain[5], plain[6], *plain[20:30], plain[39]}
    broker.do(lambda: logs[0].compact(gone))
    counted |= {9000 + index for index, offset in enumerate(plain) if offset not in gone}

    first = world.martlet().wait_ready()
    found = world.results.by_id([f"request-{number}" for number in counted], quiet=1)
    assert len(world.results.records) == len(found) == len(counted), "one result each, and none of what was aborted"
    at_rest(world, first)

    # A transaction that is open holds its partition's readers up to its end, and no longer.
    broker.do(lambda: logs[3].write_in_transaction(9, values([5000, 5001])))
    world.send([as_record(request(device_token(5002), id="request-5002"), partition=3)])
    world.send([as_record(request(device_token(5003), id="request-5003"), partition=4)])
    world.results.by_id(["request-5003"], quiet=0.5)
    assert not {"request-5000", "request-5002"} & {record.json["id"] for record in world.results.records}
    broker.do(lambda: logs[3].end_transaction(9, commits=True))
    world.results.by_id(["request-5000", "request-5001", "request-5002"])
    at_rest(world, first)

    # Nothing of it is taken up again by the next process.
    count = len(world.results.records)
    assert first.terminate() == 0
    second = world.martlet().wait_ready()
    world.send([as_record(request(device_token(6000), id="request-6000"), partition=0)])
    world.results.by_id(["request-6000"], quiet=1)
    assert len(world.results.records) == count + 1
    at_rest(world, second)
    assert second.terminate() == 0
