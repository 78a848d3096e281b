"""What the scripts read out of other programs' output."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("log", "word", "count"),
    [
        ("378 passed in 316.95s (0:05:16)\n", "passed", 378),
        ("378 passed in 316.95s (0:05:16)\n", "failed", 0),
        ("10 failed, 368 passed, 2 skipped, 1 warning in 3.10s\n", "failed", 10),
        ("10 failed, 368 passed, 2 skipped, 1 warning in 3.10s\n", "skipped", 2),
        ("======= 22 passed, 20 errors in 1.93s =======\n", "errors?", 20),
        ("1 passed, 1 error in 1.93s\n", "errors?", 1),
        ("a log line: 7 failed in Kafka\n22 passed in 1.93s\nthe end\n", "failed", 0),
        ("3 failed in 1.00s\n22 passed in 1.93s\n", "failed", 0),
        ("no tests ran in 0.01s\n", "passed", 0),
        ("", "passed", 0),
    ],
)
def test_the_counts_are_those_of_the_last_summary(tmp_path, log, word, count):
    file = tmp_path / "log"
    file.write_text(log)
    script = 'set -euo pipefail; source scripts/common.bash; pytest_count "$1" "$2"'
    output = subprocess.run(
        ["bash", "-c", script, "-", word, str(file)], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert output == f"{count}\n"
