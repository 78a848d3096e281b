"""Latency under a steady load, and memory over a long one.

Requests are produced by a timetable that does not wait for the service, and each record's timestamp is the time at
which it was due. So a stall delays all that was due meanwhile, and counts (no coordinated omission).
"""

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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

    def run(self) -> None:
        start, wall = time.monotonic() + 0.05, time.time() + 0.05
        for number in range(self.count):
            due = number / self.rate
            ahead = start + due - time.monotonic()
            if ahead > 0.0005:
                time.sleep(ahead)
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


@contextmanager
def service(
    bench, name: str, properties: dict[str, str] | None = None, partitions: int = 8
) -> Iterator[tuple[str, Martlet, "Results"]]:
    """A broker and the service, which has joined its group and sent the first requests.

    `properties` are those of its consumer.
    """
    with (
        bench.broker(name, partitions) as broker,
        bench.service(name, broker.bootstrap, properties or {}) as martlet,
    ):
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


def counts(martlet: Martlet, name: str) -> Counter[float]:
    """One of the service's histograms: how many took no longer, by upper bound in seconds."""
    start = f'{name}_bucket{{le="'
    found = {key: count for key, count in martlet.metrics().items() if key.startswith(start)}
    return Counter({float(key[len(start) :].partition('"')[0]): int(count) for key, count in found.items()})


def percentile(counts: Counter[float], share: float) -> float:
    """In milliseconds. All of a bucket are taken to be spread evenly between its bounds, as Prometheus does it."""
    lower, below, wanted = 0.0, 0, share * counts[float("inf")]
    for bound, count in sorted(counts.items()):
        if count >= wanted:
            return 1000 * (lower + (bound - lower) * (wanted - below) / max(count - below, 1))
        lower, below = bound, count
    raise AssertionError("a histogram without its last bucket")


#: How long one run lasts, in seconds. The embedded broker looks for an offset from the beginning of what it keeps,
#: batch by batch, so that it answers later and later as small batches pile up.
RUN_SECONDS = 4
RUNS = 5
#: How many a second a partition takes, for the same reason: fewer partitions mean larger batches.
PARTITION_RATE = 13_000
#: The embedded broker answers a fetch that finds nothing when its time is over. Kafka does so with the next record.
PROPERTIES = {"fetch.wait.max.ms": "1"}
HISTOGRAMS = ("martlet_record_to_send_seconds", "martlet_end_to_end_seconds")


def latency(bench, capacity: float) -> None:
    """Prints percentiles at shares of `capacity`, in notifications a second, as the service itself counts them: nothing
    that measures takes a part of the machine while the load lasts. Beside them those of a consumer that only reads.
    """
    heads = ("load", " per second", "to send, p50 ms", "p99 ms", "p99.9", "to the end, p50", "p99 ms", "p99.9")
    heads += ("read only, p50", "p99 ms")
    print("|", " | ".join(f"{head:>6}" for head in heads), "|")
    print("|", " | ".join("-" * (max(len(head), 6) - 1) + ":" for head in heads), "|")
    for share in (0.05, 0.2, 0.5, 0.8):
        rate = capacity * share
        partitions = max(2, int(rate // PARTITION_RATE))
        passed = [Counter[float](), Counter[float]()]
        for run in range(RUNS):
            with service(bench, f"latency-{share}-{run}", PROPERTIES, partitions) as (bootstrap, martlet, _):
                table = Timetable(bench, bootstrap, rate, RUN_SECONDS, partitions)
                before = [counts(martlet, name) for name in HISTOGRAMS]
                table.run()
                wait_for(martlet, table.count)
                for total, name, old in zip(passed, HISTOGRAMS, before, strict=True):
                    total.update(counts(martlet, name))
                    total.subtract(old)
        figures = [percentile(histogram, part) for histogram in passed for part in (0.5, 0.99, 0.999)]
        figures += bare(bench, rate, partitions)
        cells = [f"{share:.0%}", f"{rate:,.0f}", *(f"{figure:.1f}" for figure in figures)]
        row = (f"{cell:>{max(len(head), 6)}}" for cell, head in zip(cells, heads, strict=True))
        print("|", " | ".join(row), "|", flush=True)


def bare(bench, rate: float, partitions: int) -> list[float]:
    """Half and 99 % of what a consumer that only reads takes under the same load; medians of some runs."""
    halves, most = [], []
    for run in range(RUNS):
        with bench.broker(f"bare-{rate}-{run}", partitions) as broker:
            table = Timetable(bench, broker.bootstrap, rate, RUN_SECONDS, partitions)
            program = Path(__file__).with_name("bare.py")
            properties = [f"{name}={value}" for name, value in PROPERTIES.items()]
            command = [sys.executable, program, broker.bootstrap, str(partitions), str(table.count), *properties]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
                assert reader.stdout is not None
                reader.stdout.readline()
                table.run()
                half, slow, _ = map(float, reader.stdout.readline().split())
            halves.append(half)
            most.append(slow)
    return [statistics.median(halves), statistics.median(most)]


def wait_for(martlet: Martlet, count: int, timeout: float = 60) -> None:
    """Until that many more results than those of the first requests are acknowledged."""
    deadline = time.monotonic() + timeout
    while martlet.metrics()["martlet_end_to_end_seconds_count"] < count:
        if time.monotonic() > deadline:
            raise SystemExit(f"not {count} results within {timeout:g} s of the last request")
        time.sleep(0.1)


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
