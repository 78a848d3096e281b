"""Puts one fault at a time into a copy of the sources and looks whether the checks notice.

Each fault of mutations.json is a replacement in one file. It is caught when the simulation breaks a promise (or traps),
or, with --tests, when a unit test fails. A fault that does not apply any more, or does not compile, is an error of
the list.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(copy: Path, *command: str, limit: float = 900) -> tuple[int, str]:
    """Runs a command in the copy; 124 where it took too long (a fault may well make something run for ever)."""
    try:
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return 124, "it does not end"
    return done.returncode, done.stdout + done.stderr


def simulate(copy: Path, minutes: float) -> str | None:
    """What the simulation found, or None."""
    status, output = run(
        copy, ".build/release/simulate", "--first-failure", "--minutes", str(minutes), limit=minutes * 60 + 30
    )
    if status == 0:
        return None
    lines = [line for line in output.splitlines() if line.startswith("seed ")]
    return lines[0] if lines else f"exit {status}"


def unit_tests(copy: Path) -> str | None:
    """The first unit test that failed, or None."""
    status, output = run(copy, "swift", "build", "--build-tests")
    if status != 0:
        sys.exit(f"the unit tests do not compile:\n{output[-3000:]}")
    status, output = run(copy, "swift", "test", "--skip-build", "--filter", "DeliveryTests|APNsTests", limit=300)
    if status == 0:
        return None
    failed = [line for line in output.splitlines() if line.startswith("✘ Test ")]
    return failed[0] if failed else f"exit {status}"


def apply(copy: Path, mutation: dict[str, str]) -> tuple[Path, str]:
    """Puts the fault in; returns the file and its text before."""
    path = copy / "Sources" / mutation.get("module", "Delivery") / mutation["file"]
    text = path.read_text()
    if text.count(mutation["old"]) != 1:
        sys.exit(f"{mutation['name']}: {path.name} has {text.count(mutation['old'])} places of {mutation['old']!r}")
    path.write_text(text.replace(mutation["old"], mutation["new"]))
    return path, text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=0.25, help="how long the simulation looks for each fault")
    parser.add_argument("--tests", action="store_true", help="run the unit tests too, where the simulation saw nothing")
    parser.add_argument("--only", help="faults whose name matches this regular expression")
    options = parser.parse_args()
    mutations = json.loads((Path(__file__).parent / "mutations.json").read_text())
    if options.only:
        mutations = [mutation for mutation in mutations if re.search(options.only, mutation["name"])]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="mutate-") as directory:
        copy = Path(directory) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".build", ".git", ".venv"), symlinks=True)
        for mutation in mutations:
            path, before = apply(copy, mutation)
            status, output = run(copy, "swift", "build", "-c", "release", "--product", "simulate")
            if status != 0:
                sys.exit(f"{mutation['name']}: does not compile:\n{output[-3000:]}")
            since = time.monotonic()
            found = simulate(copy, options.minutes)
            by = "simulation"
            if found is None and options.tests:
                found, by = unit_tests(copy), "unit tests"
            path.write_text(before)
            missed += found is None
            verdict = f"caught by {by} in {time.monotonic() - since:.1f} s: {found}" if found else "NOT CAUGHT"
            print(f"{mutation['name']}: {verdict}", flush=True)
    print(f"{len(mutations)} faults, {missed} not caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
