"""How many series many tokens over many apps leave, held against the formula of docs/metrics.md.

The size is that of two variables of the environment; `-s` shows what was measured:

    MARTLET_SERIES_TOKENS=1000000 .venv/bin/pytest Tests/Interop/test_series.py -s
"""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from kafka_io import Outgoing
from processes import ROOT, MockAPNs
from waiting import until
from world import as_record, device_token

APPS = int(os.environ.get("MARTLET_SERIES_APPS", "300"))
TOKENS = int(os.environ.get("MARTLET_SERIES_TOKENS", "30000"))
#: Tokens of one request.
BATCH = 100
#: What depends on how things went, not on who was sent what: connections and their ends, a lag that is known once there
#: was a commit, apps that came to their cap.
BY_CHANCE = re.compile("connections|goaways|consumer_lag|deferred|retries|resent|failures")


def token(number: int) -> str:
    """One that no other number has; the look-alike calls one in fifty dead."""
    text = device_token(number)
    return "dead0410" + text[8:] if number % 50 == 0 else text


def batches(first: int, count: int, size: int) -> Iterator[Outgoing]:
    """Requests with `count` tokens in all, for all apps in turn."""
    for place, start in enumerate(range(first, first + count, size)):
        yield as_record(
            {
                "id": f"batch-{start}",
                "app": f"app-{place % APPS}",
                "tokens": [token(number) for number in range(start, min(start + size, first + count))],
                "payload": {"aps": {"alert": "Hello"}},
            }
        )


@pytest.mark.timeout(300 + TOKENS / 1000)
def test_tokens_make_no_series(world):
    mock = MockAPNs(world.binary, world.directory / "apns.log", "--directory", str(world.directory / "apns")).start()
    world.programs.append(mock)
    server = {"host": "localhost", "port": mock.port, "caFile": str(mock.authority)}
    for number in range(APPS):
        world.app(f"app-{number}", f"com.example.app{number}", server=server)
    # The embedded broker keeps five mebibytes a partition.
    world.topics["push.requests"] = 32
    martlet = world.martlet().wait_ready()

    def ended(series: dict[str, float]) -> int:
        return int(sum(value for name, value in series.items() if name.startswith("martlet_notifications_total")))

    def all_ended(count: int, limit: float) -> dict[str, float]:
        pause = 0.2 + TOKENS / 1e6
        return until(
            f"{count} have ended", lambda: (now := martlet.metrics()) and ended(now) >= count and now, limit, pause
        )

    # The first tokens of each app, some of which are dead.
    few = BATCH * APPS
    world.send(batches(0, few, BATCH))
    first = all_ended(few, 120)
    since, memory = time.monotonic(), martlet.resident_bytes()
    world.send(batches(few, TOKENS, BATCH))
    last = all_ended(few + TOKENS, 120 + TOKENS / 2000)
    seconds = time.monotonic() - since

    begun = time.monotonic()
    text = martlet.metrics_text()
    scrape = time.monotonic() - begun
    assert not re.search(r"[0-9a-f]{20}", text), "no token, no id"
    new = {name for name in last.keys() - first.keys() if not BY_CHANCE.search(name)}
    assert not new, sorted(new)[:20]
    formula = re.search(
        r"At most: (\d+) × apps \+ partitions \+ (\d+)\.", (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    )
    assert formula
    partitions = sum(world.topics[name] for name in ("push.requests", "push.deferred"))
    most = int(formula[1]) * (APPS + 1) + partitions + int(formula[2])
    assert len(last) <= most
    statuses = Counter()
    for name, value in last.items():
        if found := re.search(r'^martlet_notifications_total.*status="(\w+)"', name):
            statuses[found[1]] += int(value)
    assert statuses["delivered"] + statuses["rejected"] == few + TOKENS, statuses
    measured = {
        "apps": APPS, "tokens": few + TOKENS, "series": len(last), "series_after_the_first": len(first),
        "formula": most, "scrape_bytes": len(text), "scrape_ms": round(scrape * 1000, 1), "seconds": round(seconds, 1),
        "resident_mib_before": memory >> 20, "resident_mib_after": martlet.resident_bytes() >> 20, **statuses,
    }  # fmt: skip
    print(json.dumps(measured))
