"""Counts the instructions of a fixed workload with Callgrind, and compares them with those that were kept.

Instructions do not depend on how busy the machine is, so a change of a few per cent can be told from noise. They do
depend on the compiler, the C library and the processor's features: after a change of those, keep new ones (`--update`).
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

KEPT = Path(__file__).with_name("instructions.json")
#: More instructions than that for one piece of work are a regression.
TOLERANCE = 0.05
#: Name, arguments of microbench, and the two counts whose difference leaves out start and end.
WORKLOADS = {
    "decode a request": (["decode"], 4_000, 12_000),
    "record to commit": (["deliver"], 4_000, 12_000),
    "record to commit, 1,000 apps": (["deliver", "--apps", "1000"], 4_000, 12_000),
    "record to commit, 256 partitions": (["deliver", "--partitions", "256"], 4_000, 12_000),
    "record to commit, payload of 4,000 bytes": (["deliver", "--payload", "4000"], 4_000, 12_000),
    "track an offset": (["ledger"], 20_000, 60_000),
    "header fields of a request": (["headers"], 4_000, 12_000),
    "one scrape, 300 apps": (["metrics", "--apps", "300"], 4, 12),
    "one scrape, 1,000 apps": (["metrics", "--apps", "1000"], 4, 12),
}


def count(program: Path, arguments: list[str], times: int) -> int:
    """The instructions of a whole run."""
    with tempfile.TemporaryDirectory() as directory:
        command = [
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/out", str(program), *arguments,
            "--count", str(times),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return int(found[1])


def measure(program: Path) -> dict[str, int]:
    """Instructions for one piece of each work."""
    result = {}
    for name, (arguments, few, many) in WORKLOADS.items():
        print(f"counting: {name}", file=sys.stderr, flush=True)
        result[name] = round((count(program, arguments, many) - count(program, arguments, few)) / (many - few))
    return result


def check(program: Path, update: bool = False) -> int:
    """Prints a table; 1 if something takes more than it did."""
    counts = measure(program)
    if update:
        KEPT.write_text(json.dumps(counts, indent=2) + "\n")
        print(f"{KEPT.name}: kept")
        return 0
    kept = json.loads(KEPT.read_text())
    slower = 0
    print("| instructions for each                    |        now |       kept |  change |")
    print("|------------------------------------------|-----------:|-----------:|--------:|")
    for name, now in counts.items():
        before = kept.get(name)
        change = now / before - 1 if before else 0.0
        slower += change > TOLERANCE
        print(f"| {name:<40} | {now:>10,} | {before or 0:>10,} | {change:>+7.1%} |")
    if slower:
        print(f"{slower} of them took over {TOLERANCE:.0%} more: find out why, or keep them with --update")
    return 1 if slower else 0
