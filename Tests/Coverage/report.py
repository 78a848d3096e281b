"""The table of scripts/coverage: reads lcov's text from standard input, checks it against the floors."""

import argparse
import re
import sys
from collections import defaultdict
from itertools import groupby
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PURE = ("Wire", "APNs", "Delivery")


def counts(lcov: str) -> dict[str, dict[int, int]]:
    """By file of the program and line, how often it ran."""
    files: dict[str, dict[int, int]] = {}
    lines: dict[int, int] = {}
    for entry in lcov.splitlines():
        kind, _, rest = entry.partition(":")
        if kind == "SF":
            path = Path(rest)
            inside = path.is_relative_to(ROOT / "Sources")
            lines = files.setdefault(str(path.relative_to(ROOT)), {}) if inside else {}
        elif kind == "DA":
            line, count = rest.split(",")[:2]
            lines[int(line)] = max(lines.get(int(line), 0), int(count))
    return files


def missing(lines: dict[int, int]) -> list[int]:
    return sorted(line for line, count in lines.items() if count == 0)


def spans(numbers: list[int]) -> str:
    runs = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    ends = [(group[0][1], group[-1][1]) for group in (list(members) for _, members in runs)]
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)


def rows(name: str) -> list[list[str]]:
    text = (HERE / name).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [[part.strip() for part in re.split(r" \| " if " | " in line else r" +", line)] for line in lines]


def unexplained(files: dict[str, dict[int, int]]) -> tuple[list[str], list[str]]:
    """Lines of the pure modules that are neither reached nor explained, and explanations that nothing needs."""
    explained = {(path, text): False for path, text, _ in rows("unreached.txt")}
    faults = []
    for path, lines in sorted(files.items()):
        if path.split("/")[1] not in PURE:
            continue
        source = (ROOT / path).read_text(encoding="utf-8").splitlines()
        for number in missing(lines):
            key = (path, source[number - 1].strip())
            if key in explained:
                explained[key] = True
            else:
                faults.append(f"{path}:{number}: {key[1]}")
    return faults, [f"{path}: {text}" for (path, text), used in explained.items() if not used]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", metavar="MODULE")
    options = parser.parse_args()
    files = counts(sys.stdin.read())
    if options.lines:
        for path, lines in sorted(files.items()):
            if path.split("/")[1] == options.lines and missing(lines):
                print(f"{path}: {spans(missing(lines))}")
        return 0
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    faults, unneeded = unexplained(files)
    for path, lines in files.items():
        total = totals[path.split("/")[1]]
        total[0] += len(lines) - len(missing(lines))
        total[1] += len(lines)
    for path, _, _ in rows("unreached.txt"):
        totals[path.split("/")[1]][1] -= 1
    for entry in unneeded:
        totals[entry.split("/")[1]][0] -= 1
    failed = bool(faults)
    print(f"{'module':<10} {'lines':>7} {'reached':>8} {'share':>8} {'floor':>6}")
    for module, floor in rows("floors.txt"):
        reached, total = totals.pop(module)
        share = 100 * reached / total
        short = share < float(floor)
        failed = failed or short
        print(f"{module:<10} {total:>7} {reached:>8} {share:>7.2f}% {floor:>5}%{' TOO LITTLE' if short else ''}")
    for module in totals:
        failed = True
        print(f"{module} has no floor in Tests/Coverage/floors.txt")
    for fault in faults:
        print(f"not reached: {fault}")
    for entry in unneeded:
        print(f"reached after all; take it out of Tests/Coverage/unreached.txt: {entry}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
