"""What systemd would hear of the service, on a socket in systemd's place."""

import os
import signal

import pytest


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
