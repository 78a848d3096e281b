"""SIGKILL under load: nothing is lost, and only what a crash may repeat is repeated."""

import json
import os
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from sys import executable

import pytest

from contract import check_result
from kafka_io import Outgoing, produce
from processes import AnnouncingProgram, Martlet, MockAPNs
from waiting import PATIENCE
from world import World, device_token

APPS = 20
TEAMS = 3
PARTITIONS = 8
MAX_IN_FLIGHT = 2000
#: How often the service commits, and how much longer a commit may take on a busy machine, in seconds.
COMMIT_INTERVAL = 1.0
GRACE = 1.5 * PATIENCE
#: The broker keeps five mebibytes a partition, so the producer stays within this many records of the results.
HEADSTART = 40_000


@dataclass
class Load:
    """Produces requests steadily and follows their results, each in a thread of its own."""

    world: World
    total: int
    settled: int = 0
    #: For each request, when its results were completed, in milliseconds since 1970.
    results: dict[int, list[int]] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def record(self, number: int) -> Outgoing:
        fields = {
            "id": f"request-{number}",
            "app": f"app-{number % APPS}",
            "token": device_token(number),
            "payload": {"aps": {"alert": f"Message {number}"}},
        }
        return Outgoing(json.dumps(fields).encode(), key=b"%d" % number, partition=number % PARTITIONS)

    def start(self) -> None:
        # Both are made at their first use, which must not happen in two threads at once.
        self.reader, self.bootstrap = self.world.results, self.world.kafka.bootstrap
        self.threads = [threading.Thread(target=run, daemon=True) for run in (self._produce, self._follow)]
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self.threads:
            thread.join(30)

    def _produce(self) -> None:
        try:
            number = 0
            while number < self.total and not self._stop.is_set():
                if number - self.settled > HEADSTART:
                    self._stop.wait(0.02)
                    continue
                batch = range(number, min(number + 5000, self.total))
                produce(self.bootstrap, "push.requests", map(self.record, batch), "zstd")
                number = batch.stop
        except Exception as error:  # Told by the test's own thread.
            self.problems.append(f"producer: {error!r}")

    def _follow(self) -> None:
        try:
            reader = self.reader
            while not self._stop.is_set():
                for record in reader.poll(0.1, 5000):
                    result = check_result(record, against_schema=False)
                    number = int(result["id"].rpartition("-")[2])
                    if result["token"] != device_token(number) or result["app"] != f"app-{number % APPS}":
                        self.problems.append(f"a result that mixes requests: {result}")
                    self.results.setdefault(number, []).append(result["completed_at"])
                    self.statuses[result["status"]] += 1
                    self.settled = len(self.results)
                reader.records.clear()
        except Exception as error:
            self.problems.append(f"reader: {error!r}")


def stand_in(world: World, journal: Path) -> AnnouncingProgram:
    """The stand-in in a process of its own, with a journal of every request."""
    command = [
        executable, str(Path(__file__).with_name("apns_standin.py")), "--certificate", str(world.identity.certificate),
        "--key", str(world.identity.key), "--journal", str(journal), "--fault-rate", "0.02", "--seed", "7",
    ]  # fmt: skip
    for key in world.keys.values():
        public = world.directory / f"{key.key_id}.pub"
        public.write_text(key.public_pem)
        command += ["--signing-key", f"{key.key_id}:{key.team_id}:{public}"]
    return AnnouncingProgram(command, world.directory / "stand-in.log")


def crash(world: World, total: int, kills: int, server: dict) -> tuple[Load, list[float]]:
    """Runs `total` requests through a service that is killed `kills` times; the load, and when it was killed."""
    for number in range(APPS):
        key = world.key(f"KEY{number % TEAMS:07}", f"TEAM{number % TEAMS:06}")
        world.app(f"app-{number}", f"com.example.app{number}", key, server)
    source = random.Random(20_260_705)
    load = Load(world, total)
    load.start()
    times = []
    try:
        martlet = world.martlet(maxInFlight=MAX_IN_FLIGHT).wait_ready(60)
        for number in range(kills):
            # Somewhere within the next stretch of the run, while there is plenty to do.
            wait_for(load, martlet, int(total * (number + source.uniform(0.2, 0.9)) / (kills + 1)))
            martlet.kill()
            times.append(time.time())
            martlet = world.martlet(maxInFlight=MAX_IN_FLIGHT).wait_ready(60)
        wait_for(load, martlet, total)
        assert martlet.terminate() == 0, martlet.tail()
        # What the drain published must be seen as well.
        time.sleep(1)
    finally:
        load.stop()
    assert not load.problems, load.problems[:5]
    return load, times


def wait_for(load: Load, martlet: Martlet, number: int) -> None:
    """Until `number` requests have a result; as long as there is progress, it may take its time."""
    last, since = load.settled, time.monotonic()
    while load.settled < number:
        assert not load.problems, load.problems[:5]
        assert martlet.running, martlet.tail()
        if load.settled > last:
            last, since = load.settled, time.monotonic()
        assert time.monotonic() - since < 60 * PATIENCE, f"stuck at {last} of {load.total}\n{martlet.tail()}"
        time.sleep(0.01)


def check_repeats(load: Load, kills: list[float]) -> int:
    """Nothing is lost, and a repeat is of a request that was in flight at a kill, or settled just before it."""
    missing = [number for number in range(load.total) if number not in load.results]
    assert not missing, f"{len(missing)} of {load.total} have no result, such as {missing[:5]}"
    repeats, stale, ages = 0, [], []
    for number, completed in load.results.items():
        for earlier, later in zip(completed, completed[1:], strict=False):
            repeats += 1
            earlier, later = sorted((earlier / 1000, later / 1000))
            ages.append(min((kill - earlier for kill in kills if kill >= earlier), default=0))
            if not any(kill - COMMIT_INTERVAL - GRACE <= earlier and later >= kill for kill in kills):
                stale.append((number, [round(kill - earlier, 3) for kill in kills], round(later - earlier, 3)))
    assert not stale, f"{len(stale)} repeats of what was settled long before a kill, such as {stale[:5]}"
    if ages:
        middle = sorted(ages)[len(ages) // 2]
        print(f"repeats were settled up to {max(ages):.2f} s before their kill, half of them {middle:.2f} s")
    return repeats


def report(load: Load, kills: list[float], repeats: int, started: float) -> None:
    print(
        f"{load.total} requests, {len(kills)} kills, {repeats} results more than once, "
        f"{dict(load.statuses)}, {time.time() - started:.0f} s"
    )


def sized(variable: str, default: int) -> int:
    return int(os.environ.get(variable, default))


@pytest.mark.timeout(600)
def test_every_post_is_accounted_for(world):
    """Against the stand-in, whose journal shows each POST: the same apns-id for every repeat, and few of them."""
    total, started = sized("MARTLET_CRASH_JOURNAL_REQUESTS", 10_000), time.time()
    for number in range(TEAMS):
        world.key(f"KEY{number:07}", f"TEAM{number:06}")
    journal = world.directory / "journal"
    server = stand_in(world, journal)
    world.programs.append(server)
    server.start()
    address = {"host": "localhost", "port": server.announced["port"], "caFile": str(world.authority.authority)}
    load, kills = crash(world, total, 2, address)
    repeats = check_repeats(load, kills)
    server.terminate()
    report(load, kills, repeats, started)

    posts: dict[str, Counter[str]] = {}
    for line in journal.read_text().splitlines():
        identifier, token, _ = line.split(" ")
        posts.setdefault(token, Counter())[identifier] += 1
    assert all(len(identifiers) == 1 for identifiers in posts.values()), "each request has one apns-id, crash or not"
    assert len({next(iter(identifiers)) for identifiers in posts.values()}) == len(posts) == total
    # Each repeat of a result is a repeated request. More POSTs than that come from answers that asked for another
    # attempt (at most two in a hundred at each try), and from kills between the POST and its result.
    surplus = sum(sum(identifiers.values()) for identifiers in posts.values()) - total
    assert surplus <= repeats + len(kills) * MAX_IN_FLIGHT + total * 0.05, (surplus, repeats)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_nothing_is_lost_at_full_load(world):
    """Against the product's own mock and its faults: 200,000 requests over 8 partitions and 20 apps, five kills."""
    total, started = sized("MARTLET_CRASH_REQUESTS", 200_000), time.time()
    for number in range(TEAMS):
        world.key(f"KEY{number:07}", f"TEAM{number:06}")
    options = os.environ.get("MARTLET_CRASH_MOCK_OPTIONS", "--faults").split()
    server = MockAPNs(world.binary, world.directory / "mock-apns.log", *options)
    world.programs.append(server)
    server.start()
    address = {"host": "localhost", "port": server.port, "caFile": str(server.authority)}
    load, kills = crash(world, total, 5, address)
    repeats = check_repeats(load, kills)
    report(load, kills, repeats, started)
