"""What the tests of several replicas share: steady traffic with its books, and the rules for repeats."""

import json
import statistics
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from apns_standin import Answer
from contract import check_result
from kafka_io import Outgoing, committed, produce
from processes import Martlet
from waiting import PATIENCE, until
from world import TOPICS, World, device_token, request

PARTITIONS = TOPICS["push.requests"]
#: Requests a second: enough that there is always something in flight, and little for a busy machine.
RATE = 200
APPS = 4
#: How often offsets are committed, how long a revocation may take with its commit, and what a busy machine adds.
COMMIT_INTERVAL, REVOCATION, GRACE = 1.0, 8.0, 1.5 * PATIENCE
#: How long a replica may be silent before the group goes on without it, in seconds.
SESSION = 6
#: The end of an eager and of a cooperative group's name.
STRATEGIES = ["roundrobin,range", "cooperative-sticky"]


@dataclass
class Traffic:
    """Produces requests at a steady rate, and keeps the books: results, and committed offsets."""

    world: World
    sent: int = 0
    #: For each request, when it was produced, and when each of its results was completed, in seconds since 1970.
    produced: list[float] = field(default_factory=list)
    results: dict[int, list[float]] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _enough: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Traffic":
        self.reader, self.bootstrap = self.world.results, self.world.bootstrap
        work = (self._produce, self._follow, self._watch_commits)
        self.threads = [threading.Thread(target=self._run, args=(each,), daemon=True) for each in work]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._stop.set()
        for thread in self.threads:
            thread.join(30)

    def _run(self, work) -> None:
        try:
            work()
        except Exception as error:  # Told by the test's own thread.
            self.problems.append(f"{work.__name__}: {error!r}")

    def _record(self, number: int) -> Outgoing:
        fields = request(device_token(number), f"app-{number % APPS}", id=f"request-{number}")
        return Outgoing(json.dumps(fields).encode(), partition=number % PARTITIONS)

    def _produce(self) -> None:
        step = 0.25
        while not self._enough.is_set():
            batch = range(self.sent, self.sent + int(RATE * step))
            produce(self.bootstrap, "push.requests", map(self._record, batch))
            self.produced += [time.time()] * len(batch)
            self.sent = batch.stop
            self._enough.wait(step)

    def _follow(self) -> None:
        while not self._stop.is_set():
            for record in self.reader.poll(0.1, 5000):
                result = check_result(record, against_schema=False)
                number = int(result["id"].rpartition("-")[2])
                self.results.setdefault(number, []).append(result["completed_at"] / 1000)
                if result["status"] != "delivered":
                    self.problems.append(f"not delivered: {result}")
            self.reader.records.clear()

    def _watch_commits(self) -> None:
        while not self._stop.is_set():
            for partition, offset in self.committed().items():
                if offset < self.offsets.get(partition, -1001):
                    self.problems.append(f"[{partition}] went back from {self.offsets[partition]} to {offset}")
                self.offsets[partition] = max(offset, self.offsets.get(partition, -1001))
            self._stop.wait(0.2)

    def committed(self) -> dict[int, int]:
        if self.world.has_broker:
            return self.world.broker.committed(self.world.group, "push.requests")
        return committed(self.bootstrap, self.world.group, "push.requests", PARTITIONS)

    def flows(self, seconds: float = 2) -> None:
        """Waits until what is produced from now on for so long has its results."""
        time.sleep(seconds)
        self.settled(self.sent)

    def settled(self, number: int) -> None:
        until(
            f"{number} results, not {len(self.results)}; {self.problems[:3]}",
            lambda: self.problems or all(each in self.results for each in range(number)), 60,
        )  # fmt: skip
        assert not self.problems, self.problems[:5]

    def finish(self, martlets: list[Martlet]) -> None:
        """No more requests; every one has its result, and all replicas end."""
        self._enough.set()
        self.threads[0].join(30)
        self.settled(self.sent)
        # While the group is at rest: a commit that meets a rebalance may be refused.
        until("all is committed", lambda: sum(self.committed().values()) == self.sent, 30)
        for martlet in martlets:
            assert martlet.terminate() == 0, martlet.tail()
        # What the drain published must be seen as well, and what it committed.
        time.sleep(1)
        assert not self.problems, self.problems[:5]
        assert sum(self.committed().values()) == self.sent

    def repeats(self) -> list[tuple[int, float]]:
        """The requests with more than one result, and when the first was completed."""
        return [(number, sorted(times)[0]) for number, times in self.results.items() if len(times) > 1]

    def latencies(self) -> list[float]:
        """From the request to its first result, in order."""
        return sorted(min(times) - self.produced[number] for number, times in self.results.items())

    def tell(self, what: str) -> None:
        slow = self.latencies()
        print(
            f"{what}: {self.sent} requests, {len(self.repeats())} with more than one result; "
            f"to the result: median {statistics.median(slow):.2f} s, longest {slow[-1]:.2f} s"
        )


def equip(world: World, session: float = SESSION, **properties: object) -> None:
    for number in range(APPS):
        world.app(f"app-{number}", f"com.example.app{number}")
    world.kafka_properties.update({"session.timeout.ms": f"{session * 1000:.0f}", **properties})
    # The look-alike takes some time, so that there is something in flight at any moment.
    world.server.answer_by_default(Answer(delay=0.05))


def changes_of_the_group(world: World) -> list[float]:
    """When some replica had to give partitions up, in seconds since 1970."""
    times = []
    for program in world.programs:
        for line in program.text().splitlines() if isinstance(program, Martlet) else ():
            if '"partitions_revoked"' in line or '"partitions_lost"' in line:
                times.append(datetime.fromisoformat(json.loads(line)["time"]).timestamp())
    return times


def check_repeats(
    traffic: Traffic, spans: list[tuple[float, float]], partitions: Collection[int] = range(PARTITIONS)
) -> None:
    """What is repeated is of these partitions, and was completed within one of these spans of time, in seconds since
    1970.
    """
    stale = [
        (number, first)
        for number, first in traffic.repeats()
        if number % PARTITIONS not in partitions or not any(begin <= first <= end for begin, end in spans)
    ]
    assert not stale, f"{len(stale)} repeats without a reason, such as {stale[:3]}; they may be of {spans}"


def around_a_kill(when: float) -> tuple[float, float]:
    """When that was completed what a kill may repeat: within a commit's time before it, and what it had in flight."""
    return when - COMMIT_INTERVAL - GRACE, when + GRACE


def around_changes(world: World) -> list[tuple[float, float]]:
    """The same for the embedded brokers, which refuse commits from the moment on when some member has joined again."""
    return [(when - COMMIT_INTERVAL - GRACE, when + REVOCATION + GRACE) for when in changes_of_the_group(world)]


def partitions_of(martlet: Martlet) -> int:
    return int(martlet.metrics().get("martlet_assigned_partitions", 0))


def requests_of(martlet: Martlet) -> set[int]:
    """Its partitions of the requests."""
    prefix = 'martlet_consumer_lag_records{topic="push.requests",partition="'
    names = [name.removeprefix(prefix) for name in martlet.metrics() if name.startswith(prefix)]
    return {int(name.partition('"')[0]) for name in names}


def share(martlets: list[Martlet]) -> None:
    """Waits until all partitions are served, and each replica has some."""
    topics = PARTITIONS + TOPICS["push.deferred"]

    def is_shared() -> bool:
        shares = [partitions_of(martlet) for martlet in martlets]
        return sum(shares) == topics and all(shares)

    until(f"{len(martlets)} replicas share the partitions", is_shared, 40)
