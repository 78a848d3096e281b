"""The program under test, and the other programs that a test starts."""

import contextlib
import itertools
import json
import os
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from waiting import PATIENCE, until

ROOT = Path(__file__).resolve().parents[2]


def find_binary() -> Path:
    """`MARTLET_BINARY`, or the release build, or the debug build."""
    if named := os.environ.get("MARTLET_BINARY"):
        return Path(named).resolve()
    for configuration in ("release", "debug"):
        path = ROOT / ".build" / configuration / "martlet"
        if path.is_file():
            return path
    raise FileNotFoundError("no martlet in .build: run scripts/test, or swift build, or set MARTLET_BINARY")


def _ports() -> Iterator[int]:
    """The ports of this worker in some order. They are below those that the kernel hands out, so that no connection
    takes one before the server is there.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 10
    first = 12_000 + worker * PORT_COUNT
    return itertools.cycle(random.sample(range(first, first + PORT_COUNT), PORT_COUNT))


#: Of each worker.
PORT_COUNT = 2_000
PORTS = _ports()


def free_port() -> int:
    """A port that is free now, that no other worker of this run chooses, and that this one has not chosen lately: two
    servers that are not there yet never get the same.
    """
    for port in itertools.islice(PORTS, PORT_COUNT):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Program:
    """A process whose output goes to a file. Leaving the `with` block ends it."""

    def __init__(self, command: Sequence[str | os.PathLike[str]], log: Path, cwd: Path | None = None):
        self.command = [os.fspath(part) for part in command]
        self.log = log
        self.cwd = cwd
        self.process: subprocess.Popen[bytes] | None = None

    def start(self):
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=self.cwd
            )
        return self

    def __enter__(self):
        return self if self.process else self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """SIGKILL, and the wait for the end."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def terminate(self, timeout: float = 40) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.wait(timeout)

    def wait(self, timeout: float = 40) -> int:
        assert self.process is not None
        try:
            return self.process.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{self.command[0]} still runs after {timeout:g} s\n{self.tail()}") from error

    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self, lines: int = 60) -> str:
        return "\n".join(self.text().splitlines()[-lines:])

    def processor_seconds(self, thread: str | None = None) -> float:
        """User and system time so far; of the thread of this name, if one is given."""
        path = Path(f"/proc/{self.pid}")
        if thread is not None:
            path = next(task for task in path.glob("task/*") if (task / "comm").read_text().strip() == thread)
        fields = (path / "stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self, peak: bool = False) -> int:
        name = "VmHWM" if peak else "VmRSS"
        found = re.search(rf"^{name}:\s+(\d+) kB$", Path(f"/proc/{self.pid}/status").read_text(), re.MULTILINE)
        assert found
        return int(found[1]) * 1024


class AnnouncingProgram(Program):
    """A program whose first line of standard output is a JSON object that tells where it listens."""

    def start(self, timeout: float = 20):
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output, cwd=self.cwd
            )
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        line = self.next_line(timeout)
        try:
            self.announced = json.loads(line)
        except ValueError:
            self.kill()
            raise AssertionError(
                f"{self.command} announced {line!r} in place of a line of JSON\n{self.tail()}"
            ) from None
        return self

    def next_line(self, timeout: float = 20) -> bytes:
        """The next line of its standard output; empty when none comes."""
        try:
            return self._lines.get(timeout=timeout * PATIENCE)
        except queue.Empty:
            return b""

    def _read(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        with self.process.stdout as pipe, self.log.open("ab") as output:
            for line in pipe:
                self._lines.put(line)
                output.write(line)
                output.flush()


class Kafka(AnnouncingProgram):
    """A broker, or several, in a process of its own."""

    @property
    def bootstrap(self) -> str:
        return self.announced["bootstrap_servers"]


class MockKafka(Kafka):
    """`martlet mock-kafka`: the embedded broker in a process of its own."""

    def __init__(self, binary: Path, topics: Mapping[str, int], log: Path, brokers: int = 1):
        wanted = [part for name, count in topics.items() for part in ("--topic", f"{name}:{count}")]
        super().__init__([binary, "mock-kafka", "--control", "--brokers", str(brokers), *wanted], log)

    def order(self, *words: object) -> None:
        """Has the brokers do something that brokers do: `order("broker", 1, "down")`."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.next_line()
        assert answer, f"no answer to {words}"
        assert json.loads(answer)["ok"], (words, answer)


class StandInKafka(Kafka):
    """The stand-in broker (`kafka_broker`) in a process of its own, for runs of minutes: the embedded brokers look for
    an offset from the beginning of all that they keep, and become slower and slower as small batches pile up.
    """

    def __init__(self, topics: Mapping[str, int], log: Path):
        program = Path(__file__).with_name("kafka_broker.py")
        super().__init__([sys.executable, program, *(f"{name}:{count}" for name, count in topics.items())], log)


class MockAPNs(AnnouncingProgram):
    """`martlet mock-apns`: the product's own look-alike in a process of its own."""

    def __init__(self, binary: Path, log: Path, *options: str):
        super().__init__([binary, "mock-apns", "--listen", "127.0.0.1:0", *options], log)

    @property
    def port(self) -> int:
        return int(self.announced["port"])

    @property
    def authority(self) -> Path:
        return Path(self.announced["ca_file"])


class Martlet(Program):
    """`martlet run`."""

    def __init__(self, binary: Path, configuration: Path, http_port: int, log: Path):
        super().__init__([binary, "run", "--config", configuration], log)
        self.http_port = http_port

    def get(self, path: str) -> tuple[int, str]:
        """Status and body; status 0 when nobody listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return 0, ""

    def wait_ready(self, timeout: float = 30):
        """Waits for /readyz to answer 200."""
        deadline = time.monotonic() + timeout * PATIENCE
        while self.get("/readyz")[0] != 200:
            if not self.running:
                raise AssertionError(f"martlet ended with {self.wait()}\n{self.tail()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"not ready after {timeout:g} s: {self.get('/readyz')}\n{self.tail()}")
            time.sleep(0.05)
        return self

    def metrics_text(self) -> str:
        status, body = self.get("/metrics")
        assert status == 200, f"/metrics answered {status}"
        return body

    def metrics(self) -> dict[str, float]:
        """Series (name and labels, as they stand) to value."""
        return parse_metrics(self.metrics_text())


def parse_metrics(text: str) -> dict[str, float]:
    series = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            series[name] = float(value)
    return series


def nghttpd(directory: Path, identity, *options: str, workers: int = 1, streams: int = 1000) -> tuple[Program, int]:
    """A running `nghttpd` that serves `directory`, and its port."""
    port = free_port()
    command = [
        "nghttpd", "-a", "127.0.0.1", "-d", str(directory), "-n", str(workers), "-m", str(streams), *options,
        str(port), str(identity.key), str(identity.certificate),
    ]  # fmt: skip
    program = Program(command, directory.parent / f"nghttpd-{port}.log").start()

    def listens() -> bool:
        assert program.running, program.tail()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    until("nghttpd listens", listens, 10)
    return program, port
