"""How long a scrape of all metrics takes, by the number of apps."""

import re
import statistics
import subprocess
from pathlib import Path

#: Apps, and what one scrape may take with them, in milliseconds.
BOUNDS = {1: 20, 100: 20, 300: 20, 1000: 20}
TIMES = 20


def once(program: Path, apps: int) -> tuple[float, int]:
    """Milliseconds and bytes of a scrape: the mean of some in one run."""
    command = [program, "metrics", "--apps", str(apps), "--partitions", "64", "--count", str(TIMES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found = re.search(r" times, ([\d.]+) (ns|ms) each, digest (\d+)", done.stdout)
    assert found, done.stdout
    return float(found[1]) / (1e6 if found[2] == "ns" else 1), int(found[3]) // TIMES


def check(program: Path, runs: int) -> int:
    """Prints a table of medians; 1 if one of them is over its bound."""
    slow = 0
    print("| apps | size, KiB | a scrape, ms | of runs from, to | at most, ms |")
    print("|-----:|----------:|-------------:|-----------------:|------------:|")
    for apps, bound in BOUNDS.items():
        measured = [once(program, apps) for _ in range(runs)]
        times = [milliseconds for milliseconds, _ in measured]
        median = statistics.median(times)
        slow += median > bound
        print(
            f"| {apps:>4,} | {measured[0][1] / 1024:>9,.0f} | {median:>12.2f} | {min(times):>7.2f}, {max(times):>7.2f} "
            f"| {bound:>11} |",
            flush=True,
        )
    return 1 if slow else 0
