"""Latency under a steady load, and memory over a long one.

Requests are produced by a timetable that does not wait for the service, and each record's timestamp is the time at
which it was due. So a stall delays all that was due meanwhile, and counts (no coordinated omission).
"""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, Producer, TopicPartition

from processes import Martlet

#: Of `push.results`.
RESULT_PARTITIONS = 4


class Timetable(threading.Thread):
    """Produces `rate` requests a second for `seconds`."""

    def __init__(self, bench, bootstrap: str, rate: float, seconds: float, partitions: int):
        super().__init__(daemon=True)
        self.producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 1, "queue.buffering.max.messages": 1_000_000}
        )
        self.bench, self.rate, self.seconds, self.partitions = bench, rate, seconds, partitions
        self.count = int(rate * seconds)
        self.records = [bench.record() for _ in range(1000)]
        #: How late the last one was produced, at most, in seconds: if it is much, the load was not what it should be.
        self.latest = 0.0

    def run(self) -> None:
        start, wall = time.monotonic() + 0.05, time.time() + 0.05
        for number in range(self.count):
            due = number / self.rate
            ahead = start + due - time.monotonic()
            if ahead > 0.0005:
                time.sleep(ahead)
            self.latest = max(self.latest, -ahead)
            record = self.records[number % len(self.records)]
            self.producer.produce(
                "push.requests", value=record.value, key=record.key, partition=number % self.partitions,
                timestamp=int((wall + due) * 1000),
            )  # fmt: skip
            if number % 64 == 0:
                self.producer.poll(0)
        self.producer.flush(60)


class Results:
    """Reads results, and how long each took from the record's timestamp to its end, in milliseconds."""

    def __init__(self, bootstrap: str, partitions: int):
        self.consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench-results", "fetch.wait.max.ms": 10})
        self.consumer.assign([TopicPartition("push.results", number, 0) for number in range(partitions)])
        self.milliseconds: list[int] = []

    def read(self, until: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while len(self.milliseconds) < until and time.monotonic() < deadline:
            for message in self.consumer.consume(1000, timeout=0.2):
                result = json.loads(message.value())
                self.milliseconds.append(result["completed_at"] - result["requested_at"])

    def percentile(self, share: float) -> int:
        values = sorted(self.milliseconds)
        return values[min(len(values) - 1, int(len(values) * share))]


@contextmanager
def service(bench, name: str, partitions: int = 8) -> Iterator[tuple[str, Martlet, "Results"]]:
    """A broker and the service, which has joined its group and sent one request."""
    with bench.broker(name, partitions) as broker, bench.service(name, broker.bootstrap) as martlet:
        first = Timetable(bench, broker.bootstrap, 100, 0.1, partitions)
        first.run()
        results = Results(broker.bootstrap, RESULT_PARTITIONS)
        results.read(first.count, 30)
        # They waited for the service to join its group.
        results.milliseconds.clear()
        try:
            yield broker.bootstrap, martlet, results
        finally:
            results.consumer.close()


def latency(bench, capacity: float, seconds: float = 15) -> None:
    """Prints percentiles at shares of `capacity`, in notifications a second."""
    print("| load |  per second |  p50 ms |  p99 ms | p99.9 ms | produced late by, ms |")
    print("|-----:|------------:|--------:|--------:|---------:|---------------------:|")
    for share in (0.05, 0.2, 0.5, 0.8):
        with service(bench, f"latency-{share}") as (bootstrap, _, results):
            table = Timetable(bench, bootstrap, capacity * share, seconds, 8)
            table.start()
            results.read(table.count, seconds + 60)
            table.join()
            print(
                f"| {share:>4.0%} | {capacity * share:>11,.0f} | {results.percentile(0.5):>7} | "
                f"{results.percentile(0.99):>7} | {results.percentile(0.999):>8} | {table.latest * 1000:>20,.0f} |",
                flush=True,
            )


def soak(bench, minutes: float, rate: float) -> None:
    """Prints resident memory and descriptors over a long steady load."""
    print("| minute | resident memory, MiB | descriptors | results |")
    print("|-------:|---------------------:|------------:|--------:|")
    with service(bench, "soak") as (bootstrap, martlet, results):
        table = Timetable(bench, bootstrap, rate, minutes * 60, 8)
        table.start()
        for minute in range(1, int(minutes) + 1):
            results.read(table.count, 60)
            descriptors = len(os.listdir(f"/proc/{martlet.pid}/fd"))
            print(
                f"| {minute:>6} | {martlet.resident_bytes() / (1 << 20):>20.1f} | {descriptors:>11} | "
                f"{len(results.milliseconds):>7,} |",
                flush=True,
            )
        table.join()
        results.read(table.count, 60)
        print(f"{len(results.milliseconds):,} results for {table.count:,} requests")
