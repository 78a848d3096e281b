"""What systemd would hear of the service, on a socket in systemd's place."""

import os
import signal
import socket
from contextlib import suppress

import pytest

from waiting import PATIENCE


class Manager:
    """A datagram socket, as the service manager has one."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(20 * PATIENCE)

    def hear(self) -> dict[str, str]:
        """The next message but signs of life."""
        while True:
            text = self.socket.recv(4096).decode()
            if text != "WATCHDOG=1":
                return dict(line.split("=", 1) for line in text.splitlines())

    def hear_sign_of_life(self) -> None:
        while self.socket.recv(4096) != b"WATCHDOG=1":
            pass

    def hear_silence(self) -> None:
        """No sign of life within a second, after those that have come."""
        self.socket.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                self.socket.recv(4096)
        self.socket.settimeout(1)
        with pytest.raises(TimeoutError):
            self.socket.recv(4096)
        self.socket.settimeout(20 * PATIENCE)


@pytest.fixture
def manager(tmp_path, monkeypatch):
    made = Manager(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", str(made.path))
    monkeypatch.setenv("WATCHDOG_USEC", "400000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    yield made
    made.socket.close()


def test_systemd_hears_of_start_reload_life_and_end(world, manager):
    martlet = world.martlet(drainTimeout="12s")
    assert manager.hear()["READY"] == "1"
    # Whoever is told that it has started finds it listening.
    assert martlet.get("/healthz")[0] == 200
    manager.hear_sign_of_life()
    manager.hear_sign_of_life()

    os.kill(martlet.pid, signal.SIGHUP)
    reloading = manager.hear()
    assert (reloading["RELOADING"], "READY" in reloading) == ("1", False)
    assert int(reloading["MONOTONIC_USEC"]) > 0
    assert manager.hear()["READY"] == "1"

    martlet.wait_ready()
    os.kill(martlet.pid, signal.SIGTERM)
    stopping = manager.hear()
    assert stopping["STOPPING"] == "1"
    assert int(stopping["EXTEND_TIMEOUT_USEC"]) > 12_000_000
    assert martlet.wait() == 0, martlet.tail()


def test_a_service_that_cannot_start_does_not_say_that_it_has(world, manager):
    world.app().key.file.write_text("no key at all")
    martlet = world.martlet()
    assert martlet.wait() == 78, martlet.tail()
    manager.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.socket.recv(4096)
