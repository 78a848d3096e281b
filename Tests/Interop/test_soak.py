"""The soak of `scripts/soak`, for seconds in place of minutes: the books, the descriptors, the memory.

How much the healthy apps are slowed is measured by the long run alone: seconds on a busy machine tell too little.
"""

import pytest

from soak import HEALTHY, SICK, Load, run


@pytest.mark.slow
def test_sick_apps_cost_the_others_nothing_and_the_books_balance(tmp_path):
    load = Load(seconds=15, seed=7, rate=10, burst_every=8, sick_expiration=12)
    beside, alone = run(load, tmp_path / "soak")
    for side in (beside, alone):
        assert not side.faults, side.faults
        descriptors, memory = side.growth()
        assert descriptors <= 16
        assert memory < 48
        for app in HEALTHY:
            assert set(side.statuses[app]) <= {"delivered", "rejected"}
            assert side.statuses[app]["delivered"] > 80
    # Every sick app was as sick as it was meant to be.
    assert {app for app in SICK if beside.statuses[app]["delivered"] == 0} >= {
        "refused", "blackhole", "untrusted", "forbidden", "throttled", "broken", "silent", "dead",
    }  # fmt: skip
    assert beside.seen["goaways_sent"] > 0
    assert beside.seen["resets"] > 0
    assert beside.seen["silences"] > 0
