"""Measures the service from Kafka to Kafka against h2load, in turn, on the same server; see README.md here."""

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests" / "Interop"))

from confluent_kafka import Consumer, TopicPartition  # noqa: E402

import growth  # noqa: E402
import instructions  # noqa: E402
import latency  # noqa: E402
import scrape  # noqa: E402
from credentials import CertificateAuthority, SigningKey, make_signing_key  # noqa: E402
from kafka_io import Outgoing, committed, produce  # noqa: E402
from processes import Martlet, MockKafka, Program, StandInKafka, find_binary, free_port, nghttpd  # noqa: E402

CONNECTIONS = 4
STREAMS = 500
BODY_BYTES = 217
BEARER = "x" * 200
BUNDLE = "com.example.shop"
DEVICE = "ab12" * 16
#: The embedded broker keeps five mebibytes a partition; a part is left free for the batches' own headers.
PARTITION_BYTES = 4 << 20
#: A yardstick that varies by more than this, from its lowest to its highest, says that the machine is not quiet.
NOISE = 0.25


@dataclass(frozen=True)
class Run:
    per_second: float
    #: CPU time of the client or the service for each notification, in microseconds.
    microseconds: float
    #: CPU time of nghttpd for each notification, in microseconds.
    server_microseconds: float
    #: The most memory that it had, in bytes; 0 where it was not measured.
    peak: int = 0
    #: CPU time of the embedded broker for each notification, in microseconds; 0 for the yardstick, which has none.
    broker_microseconds: float = 0


@dataclass(frozen=True)
class Moment:
    """What was done so far, and the seconds of CPU that each process has used."""

    done: int
    time: float
    service: float
    server: float
    broker: float


def body(size: int = BODY_BYTES) -> bytes:
    start, end = b'{"aps":{"alert":"', b'"}}'
    return start + b"x" * (size - len(start) - len(end)) + end


def expiration() -> int:
    return int(time.time()) + 86_400


class Bench:
    def __init__(self, options: argparse.Namespace, directory: Path):
        self.options = options
        self.directory = directory
        self.binary = find_binary()
        self.authority = CertificateAuthority(directory)
        self.key: SigningKey = make_signing_key(directory, "ABC123DEFG", "DEF123GHIJ")
        devices = directory / "htdocs" / "3" / "device"
        devices.mkdir(parents=True)
        (devices / DEVICE).write_bytes(b"")
        self.apps, self.payload = 1, BODY_BYTES
        self.server: Program
        self.server, self.port = nghttpd(directory / "htdocs", self.authority.issue())

    @property
    def connections_per_app(self) -> int:
        """Many apps have a connection each, so that the number of connections does not grow beyond a thousand."""
        return CONNECTIONS if self.apps < 100 else 1

    def h2load(self, connections: int = CONNECTIONS, streams: int = STREAMS, payload: int = BODY_BYTES) -> Run:
        """One run of the yardstick."""
        content = self.directory / "body"
        content.write_bytes(body(payload))
        headers = {
            "authorization": f"bearer {BEARER}",
            "apns-topic": BUNDLE,
            "apns-push-type": "alert",
            "apns-priority": "10",
            "apns-expiration": str(expiration()),
            "apns-id": str(uuid.uuid4()),
        }
        count = self.options.requests
        command = [
            "h2load", "-t", "1", "-c", str(connections), "-m", str(streams), "-n", str(count), "-d", str(content),
            *(part for name, value in headers.items() for part in ("-H", f"{name}: {value}")),
            f"https://127.0.0.1:{self.port}/3/device/{DEVICE}",
        ]  # fmt: skip
        server = self.server.processor_seconds()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if f"status codes: {count} 2xx" not in printed:
            raise SystemExit(f"h2load did not get {count} answers of 200:\n{printed}")
        rate = re.search(r"([\d.]+) req/s", printed)
        assert rate is not None, printed
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Run(float(rate[1]), used / count * 1e6, (self.server.processor_seconds() - server) / count * 1e6)

    def leg(self, connections: int = CONNECTIONS) -> Run:
        """One run of the service's own HTTP/2 client, alone."""
        count = self.options.requests
        command = [
            self.binary.with_name("microbench"), "leg", "--port", str(self.port), "--ca-file", self.authority.authority,
            "--count", str(count), "--connections", str(connections), "--streams", str(STREAMS),
        ]  # fmt: skip
        server = self.server.processor_seconds()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = re.search(r"requests in ([\d.e-]+) s; 0 refused", printed)
        if found is None:
            raise SystemExit(f"the leg alone did not get {count} answers of 200:\n{printed}")
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Run(
            count / float(found[1]), used / count * 1e6, (self.server.processor_seconds() - server) / count * 1e6
        )

    def martlet(
        self, number: int, apps: int = 1, partitions: int = 8, payload: int = BODY_BYTES,
        shares: tuple[float, float] | None = None,
    ) -> Run:  # fmt: skip
        """One run of the service, with a broker of its own.

        With `shares` that broker is the lasting one, and the clock runs between these parts of all requests.
        """
        self.apps, self.payload = apps, payload
        records = [self.record(index % apps) for index in range(self.options.requests)]
        if shares is None:
            size = sum(len(record.value or b"") + 40 for record in records)
            partitions = max(partitions, -(-size // PARTITION_BYTES), -(-len(records) // 90_000))
        kafka = self.broker if shares is None else self.lasting_broker
        with kafka(f"{number}", partitions) as broker:
            produce(
                broker.bootstrap,
                "push.requests",
                (
                    Outgoing(record.value, record.key, partition=index % partitions)
                    for index, record in enumerate(records)
                ),
            )
            service = self.service(f"{number}", broker.bootstrap)
            with Marks(broker.bootstrap) as marks, service:
                run = self.measure(service, broker, marks, *(shares or (0, 1)))
                self.wait_for_commits(broker.bootstrap, partitions)
                code = service.terminate()
                if code != 0:
                    raise SystemExit(f"martlet ended with {code}\n{service.tail()}")
                return run

    def broker(self, name: str, partitions: int) -> MockKafka:
        """An embedded broker with all topics, `partitions` of them for requests; not started."""
        return MockKafka(self.binary, self.topics(partitions), self.directory / f"mock-kafka-{name}.log")

    def lasting_broker(self, name: str, partitions: int) -> StandInKafka:
        """The same, for runs of minutes."""
        return StandInKafka(self.topics(partitions), self.directory / f"kafka-{name}.log")

    @staticmethod
    def topics(partitions: int) -> dict[str, int]:
        return {
            "push.requests": partitions,
            "push.results": latency.RESULT_PARTITIONS,
            "push.invalid-tokens": 1,
            "push.dead-letters": 1,
            "push.deferred": 1,
        }

    def service(self, name: str, bootstrap: str, properties: dict[str, str] | None = None) -> Martlet:
        """The service with its configuration, and these properties of its consumer; not started."""
        port = free_port()
        path = self.directory / f"martlet-{name}.json5"
        configuration = self.configuration(bootstrap, port)
        configuration["kafka"]["consumerProperties"] = properties or {}
        path.write_text(json.dumps(configuration, indent=2))
        return Martlet(self.binary, path, port, self.directory / f"martlet-{name}.log")

    def measure(
        self, service: Martlet, broker: MockKafka | StandInKafka, marks: "Marks", first: float, last: float
    ) -> Run:
        """What was used between two moments: when these parts of all requests had their results."""
        total, deadline = self.options.requests, time.monotonic() + self.options.timeout
        start = end = None
        while True:
            if not service.running:
                raise SystemExit(f"martlet ended with {service.wait()}\n{service.tail()}")
            now = Moment(
                marks.total(), time.monotonic(), service.processor_seconds(), self.server.processor_seconds(),
                broker.processor_seconds(),
            )  # fmt: skip
            if start is None and now.done > total * first:
                start = now
            if end is None and now.done >= total * last:
                end = now
            if now.done >= total:
                break
            if now.time > deadline:
                raise SystemExit(f"{now.done} of {total} results after {self.options.timeout:g} s\n{service.tail()}")
            time.sleep(0.02)
        if now.done != total:
            raise SystemExit(f"{now.done} results for {total} requests")
        if start is None or end is None or end.done - start.done < total / 2:
            raise SystemExit("too few requests: most were done before the clock could start")
        count = end.done - start.done
        return Run(
            count / (end.time - start.time),
            (end.service - start.service) / count * 1e6,
            (end.server - start.server) / count * 1e6,
            service.resident_bytes(peak=True),
            (end.broker - start.broker) / count * 1e6,
        )

    def wait_for_commits(self, bootstrap: str, partitions: int) -> None:
        deadline = time.monotonic() + 10
        while sum(committed(bootstrap, "martlet", "push.requests", partitions).values()) != self.options.requests:
            if time.monotonic() > deadline:
                raise SystemExit("the offsets were not committed within 10 s of the last result")
            time.sleep(0.2)

    def record(self, app: int = 0) -> Outgoing:
        fields = (
            b'{"id":"%b","app":"shop-%d","token":"%b","push_type":"alert","priority":10,"expiration":%d,"payload":%b}'
        )
        value = fields % (str(uuid.uuid4()).encode(), app, DEVICE.encode(), expiration(), body(self.payload))
        return Outgoing(value, key=DEVICE.encode())

    def configuration(self, bootstrap: str, http_port: int) -> dict:
        app = {
            "bundleId": BUNDLE,
            "token": {"keyFile": str(self.key.file), "keyId": self.key.key_id, "teamId": self.key.team_id},
            "server": {"host": "localhost", "port": self.port, "caFile": str(self.authority.authority)},
        }
        return {
            "kafka": {"brokers": bootstrap, "group": "martlet"},
            "apps": {f"shop-{number}": app for number in range(self.apps)},
            # A single app has as many in flight as its streams take, and a quarter more.
            "delivery": {
                "maxConnectionsPerApp": self.connections_per_app,
                "maxInFlightPerApp": CONNECTIONS * STREAMS * 5 // 4,
            },
            "http": {"listen": f"127.0.0.1:{http_port}"},
            "log": {"level": "warning"},
        }


class Marks:
    """How many results Kafka has acknowledged, from the ends of the partitions: nothing needs to be read."""

    def __init__(self, bootstrap: str):
        self.consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench-marks"})
        self.places = [TopicPartition("push.results", number) for number in range(latency.RESULT_PARTITIONS)]

    def __enter__(self) -> "Marks":
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.close()

    def total(self) -> int:
        return sum(self.consumer.get_watermark_offsets(place, timeout=10)[1] for place in self.places)


def spread(values: list[float]) -> float:
    return (max(values) - min(values)) / statistics.median(values)


def table(yardstick: list[Run], service: list[Run], leg: list[Run]) -> str:
    def median(runs: list[Run], name: str) -> float:
        return statistics.median(getattr(run, name) for run in runs)

    lines = []
    for name, runs in (("h2load", yardstick), ("martlet", service), ("APNs leg alone", leg)):
        if rates := [run.per_second for run in runs]:
            lines.append(
                f"{name}: {', '.join(f'{rate:,.0f}' for rate in rates)} requests/s, spread {spread(rates):.0%}"
            )
    if spread([run.per_second for run in yardstick]) > NOISE:
        lines.append("The yardstick varied much: the machine was noisy. Trust the ratios little, and run it again.")
    if not service:
        lines.append(f"h2load: {median(yardstick, 'microseconds'):.1f} µs of CPU a request")
        return "\n".join(lines)
    rows = [
        ("APNs leg alone, per second", median(leg, "per_second"), median(yardstick, "per_second"), ">= 0.90"),
        ("APNs leg alone, CPU, µs", median(leg, "microseconds"), median(yardstick, "microseconds"), ""),
        ("end to end, per second", *(median(runs, "per_second") for runs in (service, yardstick)), ">= 0.50"),
        ("end to end, CPU, µs", *(median(runs, "microseconds") for runs in (service, yardstick)), "<= 2.0"),
        ("the broker's CPU, µs", median(service, "broker_microseconds"), 0.0, ""),
        ("nghttpd's CPU, µs", *(median(runs, "server_microseconds") for runs in (service, yardstick)), ""),
    ]
    lines += [
        "",
        f"medians of {len(service)} runs in turn:",
        "",
        "| what                       |    martlet |     h2load |  ratio | target  |",
        "|----------------------------|-----------:|-----------:|-------:|---------|",
    ]
    lines += [
        f"| {name:<26} | {ours:>10,.1f} | {theirs:>10,.1f} | {ours / theirs if theirs else 0:>6.2f} | {target:<7} |"
        for name, ours, theirs, target in rows
    ]
    peak = max(run.peak for run in service) / (1 << 20)
    lines.append(f"| {'peak resident memory, MiB':<26} | {peak:>10,.1f} | {'':>10} | {'':>6} | {'<= 96':<7} |")
    return "\n".join(lines)


def ratios(bench: Bench, options: argparse.Namespace) -> None:
    yardstick, service, leg = [], [], []
    for number in range(options.runs):
        yardstick.append(bench.h2load())
        text = f"run {number + 1}: h2load {yardstick[-1].per_second:,.0f}/s"
        if not options.yardstick_only:
            leg.append(bench.leg())
            service.append(bench.martlet(number))
            text += f", APNs leg {leg[-1].per_second:,.0f}/s, martlet {service[-1].per_second:,.0f}/s"
        print(text, file=sys.stderr, flush=True)
    print(table(yardstick, service, leg))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each, in turn (default: 5)")
    parser.add_argument("--requests", type=int, help="notifications in each run (default: 200000; of growth: 400000)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds that a run may take (default: 120)")
    parser.add_argument("--yardstick-only", action="store_true", help="run h2load alone")
    parser.add_argument("--growth", action="store_true", help="with many apps, partitions and bytes")
    parser.add_argument("--latency", type=float, metavar="N", help="percentiles at shares of N notifications a second")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="memory over a steady load")
    parser.add_argument("--rate", type=float, default=5_000, help="notifications a second of the soak (default: 5000)")
    parser.add_argument("--check", action="store_true", help="count instructions, and compare them with those kept")
    parser.add_argument("--update", action="store_true", help="count instructions, and keep them")
    parser.add_argument("--scrape", action="store_true", help="how long a scrape takes, with up to 1,000 apps")
    options = parser.parse_args()
    options.requests = options.requests or (400_000 if options.growth else 200_000)
    if options.scrape:
        sys.exit(scrape.check(find_binary().with_name("microbench"), options.runs))
    if options.check or options.update:
        sys.exit(instructions.check(find_binary().with_name("microbench"), options.update))
    with tempfile.TemporaryDirectory(prefix="martlet-bench-") as name:
        bench = Bench(options, Path(name))
        try:
            if options.growth:
                growth.growth(bench)
            elif options.latency:
                latency.latency(bench, options.latency)
            elif options.soak:
                latency.soak(bench, options.soak, options.rate)
            else:
                ratios(bench, options)
        finally:
            bench.server.kill()


if __name__ == "__main__":
    main()
