"""Latency under a steady load, and memory over a long one.

Requests are produced by a timetable that does not wait for the service, and each record's timestamp is the time at
which it was due. So a stall delays all that was due meanwhile, and counts (no coordinated omission).
"""

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

from confluent_kafka import Producer

from processes import Kafka, Martlet

#: Of `push.results`.
RESULT_PARTITIONS = 4
#: Requests that are sent first, and count for nothing: they wait for the service to join its group.
FIRST = 10


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


@contextmanager
def service(
    bench, name: str, broker: Kafka, partitions: int, properties: dict[str, str] | None = None
) -> Iterator[tuple[str, Martlet]]:
    """Starts the broker and the service, which then has joined its group and sent the first requests.

    `properties` are those of its consumer.
    """
    with broker, bench.service(name, broker.bootstrap, properties) as martlet:
        first = Timetable(bench, broker.bootstrap, FIRST * 10, 0.1, partitions)
        first.run()
        wait_for(martlet, 0)
        yield broker.bootstrap, martlet


def settled(martlet: Martlet) -> int:
    """How many requests have their results, acknowledged, beside the first ones."""
    return int(martlet.metrics().get("martlet_end_to_end_seconds_count", 0)) - FIRST


def wait_for(martlet: Martlet, count: int, timeout: float = 60) -> None:
    """Until the service is ready, and that many more than the first requests have their results."""
    martlet.wait_ready()
    deadline = time.monotonic() + timeout
    while settled(martlet) < count:
        if time.monotonic() > deadline:
            raise SystemExit(f"not {count} results within {timeout:g} s of the last request")
        time.sleep(0.1)


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
            name = f"latency-{share}-{run}"
            broker = bench.broker(name, partitions)
            with service(bench, name, broker, partitions, PROPERTIES) as (bootstrap, martlet):
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
                half, slow = map(float, reader.stdout.readline().split())
            halves.append(half)
            most.append(slow)
    return [statistics.median(halves), statistics.median(most)]


def soak(bench, minutes: float, rate: float) -> None:
    """Prints resident memory and descriptors over a long steady load."""
    print("| minute | resident memory, MiB | descriptors | results |")
    print("|-------:|---------------------:|------------:|--------:|")
    partitions = 8
    with service(bench, "soak", bench.lasting_broker("soak", partitions), partitions) as (bootstrap, martlet):
        table = Timetable(bench, bootstrap, rate, minutes * 60, partitions)
        table.start()
        for minute in range(1, int(minutes) + 1):
            time.sleep(60)
            descriptors = len(os.listdir(f"/proc/{martlet.pid}/fd"))
            print(
                f"| {minute:>6} | {martlet.resident_bytes() / (1 << 20):>20.1f} | {descriptors:>11} | "
                f"{settled(martlet):>7,} |",
                flush=True,
            )
        table.join()
        wait_for(martlet, table.count)
        print(f"{settled(martlet):,} results for {table.count:,} requests")
