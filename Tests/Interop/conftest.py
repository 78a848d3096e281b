"""Fixtures that all interoperability tests share."""

import pytest

from systemd import Manager
from world import World

LOGS = pytest.StashKey[list]()


def pytest_collection_modifyitems(items):
    """The longest first, so that the workers end at about the same time."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture
def world(tmp_path, request):
    """A world of its own for each test: broker, server, keys. Nothing runs until it is asked for."""
    made = World(tmp_path)
    request.node.stash.setdefault(LOGS, []).append(made)
    yield made
    made.close()
    leaks = made.leaks()
    assert not leaks, leaks[:5]


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """Hears what systemd would of the service, and the signs of life for its watchdog, five in a second."""
    made = Manager(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", str(made.path))
    monkeypatch.setenv("WATCHDOG_USEC", "400000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    yield made
    made.socket.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Shows the ends of the logs of every program with a test that failed."""
    report = yield
    if report.when == "call" and report.failed:
        for made in item.stash.get(LOGS, []):
            report.sections.extend((f"end of {name}", text) for name, text in made.logs().items() if text)
    return report
