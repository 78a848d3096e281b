"""Puts deliberate faults into a copy of the sources, one switched on at a time, and looks whether the checks notice.

Each fault of mutations.json stands in one file: of "old", the part between « and » (or all of it) gives way to "new".
All of them are built at once, each behind a switch that is read from the environment, so that 50 faults cost one
build: an expression becomes `(Fault.isOn(7) ? (new) : (old))`, and with "statement" it is `if … {new} else {old}`.

A fault is caught when the simulation breaks a promise, traps or does not end; else when a unit test fails. First of all
the same copy must pass with no fault switched on. A fault that finds no place any more, or does not compile, is an
error of the list.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SWITCH = "MARTLET_FAULT"
SWITCHES = """import Glibc

/// Which deliberate fault is switched on.
package enum Fault {
  private static let active = unsafe getenv("MARTLET_FAULT").flatMap { unsafe Int(String(cString: $0)) } ?? -1
  package static func isOn(_ number: Int) -> Bool { number == active }
}
"""
# The modules that may have faults, what plays them, and their unit tests.
TARGETS = """let package = Package(
  name: "martlet",
  targets: [
    library("Wire"),
    library("APNs", ["Wire"]),
    library("Delivery", ["APNs", "Wire"]),
    .target(
      name: "Simulation", dependencies: ["Delivery", "APNs", "Wire"], path: "Tests/Simulation", swiftSettings: rules),
    .executableTarget(name: "simulate", dependencies: ["Simulation"], path: "Tests/Simulate", swiftSettings: rules),
    .testTarget(name: "APNsTests", dependencies: ["APNs", "Wire"], swiftSettings: rules),
    .testTarget(name: "DeliveryTests", dependencies: ["Delivery", "APNs", "Wire"], swiftSettings: rules),
  ]
)
"""


@dataclass
class Verdict:
    """What became of one fault."""

    by: str
    what: str
    seconds: float


def run(copy: Path, *command: str, fault: int = -1, limit: float = 3600) -> tuple[int, str]:
    """Runs a command in the copy; 124 where it took too long (a fault may well make something run for ever)."""
    environment = os.environ | {SWITCH: str(fault)}
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return 124, "it does not end"
    return done.returncode, done.stdout + done.stderr


def source(root: Path, mutation: dict[str, str]) -> Path:
    """The file that the fault stands in."""
    return root / "Sources" / mutation.get("module", "Delivery") / mutation["file"]


def place(mutation: dict[str, str], text: str) -> tuple[int, int]:
    """Where the fault stands in its file."""
    before, _, rest = mutation["old"].rpartition("«")
    part, _, after = rest.partition("»")
    whole = before + part + after
    if text.count(whole) != 1:
        sys.exit(f"{mutation['name']}: {mutation['file']} has {text.count(whole)} places of {whole!r}")
    start = text.index(whole) + len(before)
    return start, start + len(part)


def switch(number: int, mutation: dict[str, str], old: str) -> str:
    """The text with the fault behind its switch."""
    if mutation.get("statement"):
        return f"if Fault.isOn({number}) {{ {mutation['new']} }} else {{ {old} }}"
    return f"(Fault.isOn({number}) ? ({mutation['new']}) : ({old}))"


def put_in(copy: Path, mutations: list[dict[str, str]]) -> None:
    """Puts all faults into the copy."""
    places: dict[Path, dict[tuple[int, int], list[int]]] = {}
    for number, mutation in enumerate(mutations):
        path = source(copy, mutation)
        places.setdefault(path, {}).setdefault(place(mutation, path.read_text()), []).append(number)
    for path, faults in places.items():
        text = path.read_text()
        end = len(text)
        for (start, stop), numbers in sorted(faults.items(), reverse=True):
            if stop > end:
                sys.exit(f"{mutations[numbers[0]]['name']}: overlaps with another fault of {path.name}")
            code = text[start:stop]
            for number in numbers:
                code = switch(number, mutations[number], code)
            text, end = text[:start] + code + text[stop:], start
        if "import Wire" not in text:
            text = "import Wire\n\n" + text
        path.write_text(text)
    (copy / "Sources/Wire/Fault.swift").write_text(SWITCHES)
    manifest = copy / "Package.swift"
    manifest.write_text(manifest.read_text().partition("let package =")[0] + TARGETS)
    # The support of the tests brings sockets and TLS along, which no fault is about.
    for test in [*copy.glob("Tests/APNsTests/**/*.swift"), *copy.glob("Tests/DeliveryTests/**/*.swift")]:
        if "import TestSupport" in test.read_text():
            test.unlink()


def update(copy: Path, fresh: Path) -> None:
    """Makes the copy like the fresh tree; what is the same is not touched, and so not compiled again."""
    for part in ["Sources", "Tests"]:
        for path in [path for path in (copy / part).rglob("*") if path.is_file()]:
            if not (fresh / path.relative_to(copy)).is_file():
                path.unlink()
    for path in [path for path in fresh.rglob("*") if path.is_file()]:
        target = copy / path.relative_to(fresh)
        if not target.is_file() or target.read_bytes() != path.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def build(copy: Path, *command: str) -> None:
    """Builds something of the copy, or ends."""
    since = time.monotonic()
    status, output = run(copy, "swift", "build", *command)
    if status != 0:
        sys.exit(f"does not compile:\n{output[-5000:]}")
    print(f"built in {time.monotonic() - since:.0f} s: {' '.join(command)}", flush=True)


def simulate(copy: Path, fault: int, minutes: float) -> str | None:
    """What the simulation found, or None."""
    status, output = run(
        copy,
        *(".build/release/simulate", "--first-failure", "--jobs", "1", "--minutes", str(minutes)),
        fault=fault,
        limit=minutes * 60 + 60,
    )
    if status == 0:
        return None
    found = [line for line in output.splitlines() if line.startswith("seed ")]
    return found[0] if found else "it does not end" if status == 124 else f"it traps ({status})"


def unit_tests(copy: Path, fault: int) -> str | None:
    """The first unit test that failed, or None."""
    status, output = run(copy, "swift", "test", "--skip-build", "--disable-xctest", fault=fault, limit=300)
    if status == 0:
        return None
    failed = re.search(r"^✘ Test (\S+) (?:recorded|failed|with)", output, re.MULTILINE)
    return failed[1] if failed else "they do not end" if status == 124 else f"they trap ({status})"


def judge(copy: Path, faults: dict[int, str], options: argparse.Namespace) -> dict[int, Verdict]:
    """What the checks say of each fault: the simulation of several at a time, the unit tests one after the other."""
    verdicts: dict[int, Verdict] = {}

    def ask(number: int, by: str, check, *arguments) -> None:
        since = time.monotonic()
        found = check(copy, number, *arguments)
        if found:
            verdicts[number] = Verdict(by, found, time.monotonic() - since)
        print(f"{faults[number]}: {by}: {found or 'nothing'}", flush=True)

    if not options.tests_only:
        if found := simulate(copy, -1, options.minutes):
            sys.exit(f"the simulation fails with no fault switched on: {found}")
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda number: ask(number, "simulation", simulate, options.minutes), faults))
    missed = [number for number in faults if number not in verdicts]
    if missed and not options.simulation_only:
        build(copy, "--build-tests")
        if found := unit_tests(copy, -1):
            sys.exit(f"the unit tests fail with no fault switched on: {found}")
        for number in missed:
            ask(number, "unit test", unit_tests)
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=0.5, help="how long the simulation looks for each fault")
    parser.add_argument("--jobs", type=int, default=2, help="how many faults are looked for at a time")
    parser.add_argument("--simulation-only", action="store_true", help="do not ask the unit tests")
    parser.add_argument("--tests-only", action="store_true", help="do not ask the simulation")
    parser.add_argument("--check", action="store_true", help="only look whether each fault finds its place")
    parser.add_argument("--only", help="faults whose name matches this regular expression")
    parser.add_argument("--copy", type=Path, help="where the copy is made, and kept for the next time")
    options = parser.parse_args()
    mutations = json.loads((Path(__file__).parent / "mutations.json").read_text())
    # All are built in any case, so that whoever looks again at some of them does not build again.
    faults = {
        number: mutation["name"]
        for number, mutation in enumerate(mutations)
        if re.search(options.only or "", mutation["name"])
    }
    if options.check:
        for mutation in mutations:
            place(mutation, source(ROOT, mutation).read_text())
        print(f"{len(mutations)} faults have their place")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutate-") as directory:
        fresh = Path(directory) / "fresh"
        for part in ["Sources", "Tests"]:
            shutil.copytree(ROOT / part, fresh / part)
        shutil.copy(ROOT / "Package.swift", fresh)
        put_in(fresh, mutations)
        copy = options.copy or Path(directory) / "copy"
        update(copy, fresh)
        if not options.tests_only:
            build(copy, "-c", "release", "--product", "simulate")
        verdicts = judge(copy, faults, options)
    print("| fault | caught by | what it says | after |\n|---|---|---|---|")
    for number, name in faults.items():
        verdict = verdicts.get(number)
        row = f"{verdict.by} | {verdict.what} | {verdict.seconds:.1f} s" if verdict else "**nothing** | |"
        print(f"| {name} | {row} |")
    missed = len(faults) - len(verdicts)
    by_simulation = sum(verdict.by == "simulation" for verdict in verdicts.values())
    print(
        f"{len(faults)} faults: {by_simulation} caught by the simulation, {len(verdicts) - by_simulation} by unit "
        f"tests, {missed} not caught"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
