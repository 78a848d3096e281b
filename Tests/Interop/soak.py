"""A long run with sick apps: 30 apps share the topics, and a dozen of them have every fault at once.

Two services run side by side on the same machine at the same time, each with a broker and an APNs look-alike of its
own: one serves all apps, the other the healthy ones alone. Both get the same paced traffic of the healthy apps, so that
whatever else the machine does befalls both alike. At the end the books must balance (each request has exactly one
result, each event its result, each offset its commit), no healthy app may be slower beside the sick ones than without
them, and memory and descriptors must be flat.
"""

import argparse
import json
import random
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer

from credentials import CertificateAuthority, SigningKey, make_signing_key
from kafka_io import Reader, committed
from processes import Martlet, MockAPNs, StandInKafka, find_binary, free_port
from waiting import PATIENCE

TOPICS = {
    "push.requests": 8,
    "push.results": 8,
    "push.invalid-tokens": 2,
    "push.dead-letters": 2,
    "push.deferred": 4,
}
#: How each sick app is sick, as rules of the look-alike; `None`: its server or its key is at fault.
SICK: dict[str, list[dict] | None] = {
    "refused": None,
    "blackhole": None,
    "untrusted": None,
    "forbidden": None,
    "throttled": [{"status": 429, "reason": "TooManyRequests"}],
    "broken": [{"status": 500, "reason": "InternalServerError", "share": 0.5}, {"status": 503, "reason": "Shutdown"}],
    "silent": [{"silent": "request"}],
    "slow": [{"delay_ms": 3000, "delay_max_ms": 6000}],
    "sluggish": [{"delay_ms": 500, "delay_max_ms": 2000}],
    "flapping": [
        {"goaway": 0, "last_stream": "previous", "close": True, "every": 31},
        {"reset": 2, "every": 19},
        {"disconnect": "abort", "every": 47},
        {"silent": "connection", "every": 151},
    ],
    "narrow": [{"max_concurrent_streams": 1}, {"delay_ms": 100, "delay_max_ms": 300}],
    "dead": [{"status": 400, "reason": "BadDeviceToken"}],
}
APPS = 30
HEALTHY = [f"healthy-{number:02}" for number in range(APPS - len(SICK))]
#: Small enough that a sick app comes to it.
CAP = 500
DELIVERY = {"maxInFlight": 4000, "maxInFlightPerApp": CAP, "requestTimeout": "10s", "connectTimeout": "5s"}
WINDOW = 10


@dataclass
class Load:
    """What is produced; the same seed makes the same requests at the same times."""

    seconds: int
    seed: int
    #: Requests a second of each app.
    rate: float = 15
    #: Now and then a sick app gets as many at once as it may have in flight, and half as many more.
    burst: int = CAP * 3 // 2
    burst_every: float = 20
    #: Seconds that a request of a sick app is good for; parked ones end then.
    sick_expiration: int = 45


@dataclass
class Side:
    """One service with all that it needs, and its books."""

    name: str
    apps: list[str]
    directory: Path
    stack: ExitStack
    sent: dict[str, tuple[str, str]] = field(default_factory=dict)
    malformed: int = 0
    results: Counter = field(default_factory=Counter)
    statuses: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    #: By app: when each result was completed, and how long after its request was made; in milliseconds.
    completed: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    wanted_events: Counter = field(default_factory=Counter)
    events: Counter = field(default_factory=Counter)
    dead_letters: int = 0
    unexpected: list[str] = field(default_factory=list)
    #: Seconds since the start, descriptors, resident bytes.
    samples: list[tuple[float, int, int]] = field(default_factory=list)
    #: In how many of them the intake was held.
    held: int = 0
    faults: list[str] = field(default_factory=list)

    def start(self) -> None:
        self.directory.mkdir()
        binary = find_binary()
        self.kafka = self.stack.enter_context(StandInKafka(TOPICS, self.directory / "kafka.log"))
        rules = [{"topic": f"com.example.{name}", **rule} for name in self.apps for rule in SICK.get(name) or []]
        script = self.directory / "script.json"
        script.write_text(json.dumps({"rules": rules}))
        keys = self.directory / "keys"
        self.journal = self.directory / "journal.json"
        self.mock = self.stack.enter_context(
            MockAPNs(
                binary, self.directory / "apns.log", "--directory", str(keys), "--make-key", "ABC123DEFG:DEF123GHIJ",
                "--script", str(script), "--journal", str(self.journal), "--remember", "0",
            )
        )  # fmt: skip
        known = SigningKey(keys / "AuthKey_ABC123DEFG.p8", "ABC123DEFG", "DEF123GHIJ", "")
        self.martlet = self._martlet(binary, known)
        self.martlet.wait_ready(60)
        self.producer = Producer(
            {"bootstrap.servers": self.kafka.bootstrap, "linger.ms": 2, "queue.buffering.max.messages": 500_000}
        )
        self.readers = [
            self.stack.enter_context(Reader(self.kafka.bootstrap, topic))
            for topic in ("push.results", "push.invalid-tokens", "push.dead-letters")
        ]

    def _martlet(self, binary: Path, known: SigningKey) -> Martlet:
        unknown = make_signing_key(self.directory, "XYZ987WVUT", "DEF123GHIJ")
        strange = CertificateAuthority(self.directory)
        hole = self.stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=1))
        server = {"host": "localhost", "port": self.mock.port, "caFile": str(self.mock.authority)}
        servers = {
            "refused": {**server, "port": 1},
            "blackhole": {**server, "port": hole.getsockname()[1]},
            "untrusted": {**server, "caFile": str(strange.authority)},
        }
        apps = {}
        for name in self.apps:
            key = unknown if name == "forbidden" else known
            apps[name] = {
                "bundleId": f"com.example.{name}",
                "token": {"keyFile": str(key.file), "keyId": key.key_id, "teamId": key.team_id},
                "server": servers.get(name, server),
            }
        port = free_port()
        configuration = {
            "kafka": {"brokers": self.kafka.bootstrap, "group": "soak"},
            "apps": apps,
            "delivery": DELIVERY,
            "http": {"listen": f"127.0.0.1:{port}"},
        }
        path = self.directory / "martlet.json5"
        path.write_text(json.dumps(configuration))
        return self.stack.enter_context(Martlet(binary, path, port, self.directory / "martlet.log"))

    # Traffic.

    def send(self, identifier: str, app: str, token: str, expiration: int) -> None:
        value = {
            "id": identifier, "app": app, "token": token, "expiration": expiration,
            "payload": {"aps": {"alert": "A message of the usual length, to be read on a small screen"}},
        }  # fmt: skip
        self.sent[identifier] = (app, token)
        self.producer.produce("push.requests", json.dumps(value).encode(), token.encode())
        self.producer.poll(0)

    def send_malformed(self) -> None:
        self.malformed += 1
        self.producer.produce("push.requests", b"{not json")

    # Books.

    def read(self) -> None:
        for reader in self.readers:
            for record in reader.poll(0.02, 5000):
                self._take(reader.topic, record.json if reader.topic != "push.dead-letters" else {})
            reader.records.clear()

    def _take(self, topic: str, fields: dict) -> None:
        if topic == "push.dead-letters":
            self.dead_letters += 1
            return
        identifier = fields["id"]
        app, token = self.sent.get(identifier, (None, None))
        if (fields["app"], fields["token"]) != (app, token):
            self.unexpected.append(json.dumps(fields))
        elif topic == "push.invalid-tokens":
            self.events[identifier] += 1
        else:
            self.results[identifier] += 1
            self.statuses[app][fields["status"]] += 1
            self.completed[app].append((fields["completed_at"], fields["completed_at"] - fields["requested_at"]))
            if fields.get("reason") in {"Unregistered", "BadDeviceToken"}:
                self.wanted_events[identifier] += 1

    def sample(self, started: float) -> None:
        pid = self.martlet.pid
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        self.samples.append((time.monotonic() - started, descriptors, self.martlet.resident_bytes()))
        self.held += self.martlet.metrics()["martlet_intake_held"] > 0

    def finish(self, timeout: float) -> None:
        """Waits for the last result, then stops the service."""
        deadline = time.monotonic() + timeout * PATIENCE
        while len(self.results) < len(self.sent) or self.dead_letters < self.malformed:
            if time.monotonic() > deadline:
                break
            self.read()
        quiet = time.monotonic() + 2
        while time.monotonic() < quiet:
            self.read()
        self.processor_seconds = self.martlet.processor_seconds()
        self.exit_code = self.martlet.terminate()
        self.mock.terminate()
        self.seen = json.loads(self.journal.read_text())
        self.faults = self._faults_in_the_books()

    def _faults_in_the_books(self) -> list[str]:
        """Empty where they balance."""
        faults = list(self.unexpected[:5])
        missing = [one for one in self.sent if self.results[one] == 0]
        if missing:
            apps = Counter(self.sent[one][0] for one in missing)
            faults.append(f"{len(missing)} requests have no result: {dict(apps)}")
        if repeated := sum(1 for count in self.results.values() if count > 1):
            faults.append(f"{repeated} requests have more than one result")
        if self.events != self.wanted_events:
            faults.append(f"{self.events.total()} invalid-token events, but {self.wanted_events.total()} such results")
        if self.dead_letters != self.malformed:
            faults.append(f"{self.dead_letters} dead letters for {self.malformed} malformed records")
        if self.exit_code != 0:
            faults.append(f"the service ended with {self.exit_code}")
        delivered = sum(statuses["delivered"] for statuses in self.statuses.values())
        if self.seen["accepted"] < delivered:
            faults.append(f"{delivered} delivered, but APNs accepted only {self.seen['accepted']}")
        for app in HEALTHY:
            odd = {status for status in self.statuses[app] if status not in {"delivered", "rejected"}}
            if odd:
                faults.append(f"{app}: {dict(self.statuses[app])}")
        offsets = committed(self.kafka.bootstrap, "soak", "push.requests", TOPICS["push.requests"])
        if sum(max(0, offset) for offset in offsets.values()) != len(self.sent) + self.malformed:
            faults.append(f"{len(self.sent) + self.malformed} records, but the commits are {offsets}")
        return faults

    def growth(self) -> tuple[int, float]:
        """Descriptors and MiB of the last quarter of the run above those of the second, the first being warm-up."""
        quarter = max(1, len(self.samples) // 4)
        early, late = self.samples[quarter : 2 * quarter], self.samples[-quarter:]
        descriptors = max(sample[1] for sample in late) - max(sample[1] for sample in early)
        memory = statistics.median(sample[2] for sample in late) - statistics.median(sample[2] for sample in early)
        return descriptors, memory / 1048576


def drive(load: Load, sides: list[Side], started: float) -> None:
    """Produces at the pace of the load, for all sides alike, and samples them."""
    chance = random.Random(load.seed)
    due = {app: chance.random() / load.rate for app in [*HEALTHY, *SICK]}
    bursts = {app: chance.uniform(3, load.burst_every) for app in SICK}
    sampled = 0.0
    number = 0

    def send(app: str) -> None:
        nonlocal number
        number += 1
        # One device in a hundred is gone, whichever app it has; tokens that begin so are answered with 410.
        token = ("deadbeef" if number % 100 == 0 else "") + f"{number:056x}"
        expiration = int(time.time()) + (load.sick_expiration if app in SICK else 600)
        for side in sides:
            if app in side.apps:
                side.send(f"{app}-{number}", app, token, expiration)

    while (now := time.monotonic() - started) < load.seconds:
        for app in due:
            while due[app] <= now:
                send(app)
                due[app] += chance.uniform(0.5, 1.5) / load.rate
            if app in SICK and bursts[app] <= now:
                for _ in range(load.burst):
                    send(app)
                bursts[app] += chance.uniform(0.5, 1.5) * load.burst_every
        if now - sampled >= 1:
            sampled = now
            for side in sides:
                side.sample(started)
                side.send_malformed()
        time.sleep(0.005)
    for side in sides:
        side.producer.flush(60)


def percentile(values: list[int], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


@dataclass
class Slowdown:
    """A healthy app beside the sick ones, and without them; times in milliseconds."""

    app: str
    median: tuple[float, float]
    p95: tuple[float, float]
    p99: tuple[float, float]
    #: The least share of what was delivered in a window without the sick apps.
    least_window: float

    def is_slowed(self, allowance: float = 0.1, clock: float = 5) -> bool:
        """By more than a tenth; a few milliseconds are the machine's."""
        slow = any(beside > alone * (1 + allowance) + clock for beside, alone in (self.median, self.p95))
        return slow or self.least_window < 1 - allowance


def slowdowns(beside: Side, alone: Side) -> list[Slowdown]:
    found = []
    for app in HEALTHY:
        mine, theirs = beside.completed[app], alone.completed[app]
        start = min(at for at, _ in theirs)

        def windows(results: list[tuple[int, int]], start: int = start) -> Counter:
            return Counter((at - start) // (1000 * WINDOW) for at, _ in results)

        here, there = windows(mine), windows(theirs)
        # The last window is cut short.
        shares = [here[window] / there[window] for window in there if window < max(there)] or [1.0]
        figures = [
            tuple(round(percentile([late for _, late in results], share), 1) for results in (mine, theirs))
            for share in (0.5, 0.95, 0.99)
        ]
        found.append(Slowdown(app, *figures, least_window=round(min(shares), 3)))
    return found


def run(load: Load, directory: Path) -> tuple[Side, Side]:
    """The whole run; all is over when it returns."""
    directory.mkdir(exist_ok=True)
    with ExitStack() as stack:
        beside = Side("beside", [*HEALTHY, *SICK], directory / "beside", stack)
        alone = Side("alone", HEALTHY, directory / "alone", stack)
        sides = [beside, alone]
        for side in sides:
            side.start()
        over = threading.Event()

        def read(side: Side) -> None:
            while not over.is_set():
                side.read()

        readers = [threading.Thread(target=read, args=(side,), daemon=True) for side in sides]
        for reader in readers:
            reader.start()
        drive(load, sides, time.monotonic())
        over.set()
        for reader in readers:
            reader.join()
        for side in sides:
            # A parked request comes back every few seconds, and ends when it has expired.
            side.finish(120)
        return beside, alone


def report(load: Load, beside: Side, alone: Side, found: list[Slowdown]) -> dict:
    def whole(side: Side) -> dict:
        descriptors, memory = side.growth()
        return {
            "requests": len(side.sent),
            "results": dict(sum((statuses for statuses in side.statuses.values()), Counter())),
            "events": side.events.total(),
            "dead_letters": side.dead_letters,
            "processor_seconds": round(side.processor_seconds, 1),
            "intake_held_share": round(side.held / max(1, len(side.samples)), 3),
            "descriptors": [side.samples[len(side.samples) // 4][1], side.samples[-1][1]],
            "descriptors_grown": descriptors,
            # Ten times in the run, at its end last.
            "memory_mib": [
                round(side.samples[len(side.samples) * tenth // 10 - 1][2] / 1048576, 1) for tenth in range(1, 11)
            ],
            "memory_grown_mib": round(memory, 1),
            "faults_of_the_look_alike": {name: side.seen[name] for name in ("resets", "silences", "goaways_sent")},
            "faults_in_the_books": side.faults,
        }

    return {
        "seconds": load.seconds,
        "seed": load.seed,
        "beside": whole(beside),
        "alone": whole(alone),
        "sick": {app: dict(beside.statuses[app]) for app in SICK},
        "healthy": [vars(one) for one in found],
        "slowed": [one.app for one in found if one.is_slowed()],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a directory for logs and configurations (default: a temporary one)")
    options = parser.parse_args()
    load = Load(seconds=int(options.minutes * 60), seed=options.seed)
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.keep or Path(temporary)
        beside, alone = run(load, directory)
        found = slowdowns(beside, alone)
        made = report(load, beside, alone, found)
    print(json.dumps(made, indent=2))
    faults = [f"{side}: {fault}" for side in ("beside", "alone") for fault in made[side]["faults_in_the_books"]]
    faults += [f"{app} was slowed by more than a tenth" for app in made["slowed"]]
    # By design no more than two percent of the time, and what the machine adds to each wait.
    if (share := made["beside"]["intake_held_share"]) > 0.05:
        faults.append(f"the intake was held in {share:.1%} of the samples")
    for side in ("beside", "alone"):
        if made[side]["descriptors_grown"] > 5:
            faults.append(f"{side}: descriptors grew by {made[side]['descriptors_grown']}")
        if made[side]["memory_grown_mib"] > 5:
            faults.append(f"{side}: memory grew by {made[side]['memory_grown_mib']} MiB")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
