"""Whether the service lives and is ready: from its start to its end, and while a thread of it hangs."""

import json
import os
import signal
import socket
import time
from contextlib import ExitStack

import pytest

from apns_standin import Answer
from test_command_line import martlet as command
from threads import stopped
from waiting import until
from world import as_record, device_token, request


def stuck(martlet) -> set[str]:
    """What `/healthz` holds against the service; nothing: it is live, and its status says the same."""
    status, body = martlet.get("/healthz")
    found = {check["check"]: check for check in json.loads(body)["checks"]}
    faults = {name for name, check in found.items() if not check["ok"]}
    assert status == (503 if faults else 200), body
    assert all("has not turned for" in found[name]["why"] for name in faults), body
    return faults


def send(world, count: int, start: int) -> None:
    world.send([as_record(request(device_token(start + number))) for number in range(count)])


def test_a_stuck_lane_and_stuck_delivery_fail_liveness_until_they_turn_again(world, manager):
    martlet = world.martlet(lanes=2).wait_ready()
    send(world, 40, 0)
    world.results.count(40)
    assert stuck(martlet) == set()
    manager.hear_sign_of_life()

    with ExitStack() as lane, ExitStack() as delivery:
        lane.enter_context(stopped(martlet.pid, "lane-0"))
        delivery.enter_context(stopped(martlet.pid, "delivery"))
        since = time.monotonic()
        send(world, 40, 100)
        both = {"loop lane-0", "loop delivery"}
        until("both are named", lambda: stuck(martlet) == both, 40, pause=0.2)
        assert time.monotonic() - since > 13, "a loop may take its time"
        assert martlet.metrics()["martlet_stuck_loops"] == 2
        problems = json.loads(martlet.get("/status.json")[1])["problems"]
        told = [problem["message"] for problem in problems if problem["code"] == "loop_stuck"]
        assert sorted(text.split(" has")[0] for text in told) == sorted(both), problems
        # The watchdog hears nothing more.
        manager.hear_silence()
        delivery.close()
        until("delivery turns", lambda: stuck(martlet) == {"loop lane-0"}, 20, pause=0.1)
        lane.close()
        until("the lane turns", lambda: not stuck(martlet), 20, pause=0.1)
    assert martlet.metrics()["martlet_stuck_loops"] == 0
    manager.hear_sign_of_life()
    results = world.results.count(80)
    assert {record.json["status"] for record in results} == {"delivered"}


def test_a_stuck_endpoint_answers_nothing_and_delivery_goes_on(world):
    """A probe that hears nothing counts as failed; nobody else waits for the endpoint."""
    martlet = world.martlet().wait_ready()
    with stopped(martlet.pid, "endpoint"):
        with socket.create_connection(("127.0.0.1", martlet.http_port), timeout=2) as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            with pytest.raises(TimeoutError):
                client.recv(1)
        asked = command("health", "--timeout", "1s", "--config", martlet.command[-1])
        assert asked.returncode == 69, asked
        send(world, 200, 0)
        world.results.count(200)
    until("it answers again", lambda: martlet.get("/healthz")[0] == 200, 20)


def unready(martlet) -> dict[str, str]:
    """What `/readyz` holds against the service, and why; it lives meanwhile."""
    assert martlet.get("/healthz")[0] == 200
    status, body = martlet.get("/readyz")
    faults = {check["check"]: check["why"] for check in json.loads(body)["checks"] if not check["ok"]}
    assert status == (503 if faults else 200), body
    return faults


def test_readiness_from_the_start_to_the_end(world):
    """Not before it has joined the group; then while it reloads, and with a sick app; not once it drains."""
    world.app("shop-ios")
    world.app("bank-ios", "com.example.bank", key=world.key("KLM123NOPQ"))
    world.server.judge.keys = {"ABC123DEFG": world.server.judge.keys["ABC123DEFG"]}
    world.kafka.order("broker", 1, "down")
    martlet = world.martlet()
    until("it answers", lambda: martlet.get("/healthz")[0] == 200, 30)
    assert unready(martlet) == {"consumer group": "not joined"}
    world.kafka.order("broker", 1, "up")
    until("it has joined", lambda: not unready(martlet), 40)

    # An app whose key is refused is named, and is no reason to send the replica away.
    world.send([as_record(request(device_token(number), app="bank-ios")) for number in range(40)])
    until("the app is named", lambda: "bank-ios" in martlet.get("/readyz")[1], 30)
    assert unready(martlet) == {}

    # Ready at every moment of a reload, and of one that is refused.
    path = world.directory / "martlet-1.json5"
    good = path.read_text()

    def reload(text: str, told: str) -> None:
        since = len(martlet.text())
        path.write_text(text)
        os.kill(martlet.pid, signal.SIGHUP)

        def is_told() -> bool:
            assert unready(martlet) == {}
            return told in martlet.text()[since:]

        until("the reload is told", is_told, 30, pause=0)

    reload(good.replace('"level": "info"', '"level": "debug"'), '"code":"reloaded"')
    reload(good.replace('"level": "info"', '"level": "loud"'), '"code":"reload_refused"')
    reload(good, '"code":"reloaded"')

    world.server.answer_by_default(Answer(delay=2))
    world.send([as_record(request(device_token(100)))])
    until("a request is open", lambda: any(seen.token == device_token(100) for seen in world.server.seen), 30)
    assert martlet.process is not None
    martlet.process.terminate()
    until("it drains", lambda: unready(martlet) == {"service": "draining"}, 10)
    assert martlet.metrics()["martlet_draining"] == 1
    assert martlet.wait() == 0, martlet.tail()
    world.results.until("its result is there", lambda records: any(one.json["app"] == "shop-ios" for one in records))
