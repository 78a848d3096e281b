"""The log: its form, its level, repeats, and the traces that requests belong to."""

import json
import os
import pty
import signal
import subprocess
import threading

import forms
from waiting import until
from world import as_record, device_token, request

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


def test_the_level_changes_with_sighup(world):
    """Down to errors alone, and up to a line for each notification."""
    martlet = world.martlet().wait_ready()
    path = world.directory / "martlet-1.json5"
    configuration = json.loads(path.read_text().split("\n", 1)[1])

    def reload(level: str, cap: int) -> None:
        """The cap shows when the reload is done."""
        configuration["log"]["level"] = level
        configuration["apps"]["shop-ios"]["maxInFlight"] = cap
        path.write_text(json.dumps(configuration))
        os.kill(martlet.pid, signal.SIGHUP)
        shown = f'martlet_max_in_flight_notifications{{app="shop-ios"}} {cap}\n'
        until("it is seen", lambda: shown in martlet.metrics_text(), 30)

    def levels(since: int) -> set[str]:
        return {json.loads(line)["level"] for line in martlet.text()[since:].splitlines()}

    reload("info", 77)
    until("the reload is told", lambda: '"code":"reloaded"' in martlet.text(), 30)
    reload("error", 78)
    quiet = len(martlet.text())
    world.send([as_record(request(device_token(1)))])
    world.results.count(1)
    assert levels(quiet) <= {"error"}
    reload("trace", 79)
    loud = len(martlet.text())
    world.send([as_record(request(device_token(2)))])
    until("its end is told", lambda: "trace" in levels(loud), 30)


def test_lines_that_repeat_are_counted(world):
    """A topic that takes nothing: a few lines say so, and one, at the end at the latest, how many more there were."""
    world.send([as_record(request(device_token(number))) for number in range(200)])
    world.kafka.order("fail", "produce", "TOPIC_AUTHORIZATION_FAILED", 10_000)
    martlet = world.martlet()

    def told() -> list[dict]:
        lines = map(json.loads, martlet.text().splitlines())
        return [line for line in lines if line["code"] == "publication_repeated"]

    until("it is told", lambda: len(told()) >= 5, 40)
    world.kafka.order("pass", "produce")
    world.results.count(200)
    assert martlet.terminate() == 0
    bare = [line for line in told() if not line.get("suppressed")]
    assert len(bare) <= 20, "five in ten seconds"
    assert sum(line.get("suppressed", 0) for line in told()) >= 150, told()


def test_results_and_log_name_the_trace_of_a_request(world):
    """Whether it stands in a header or in a field of any form; and what is none is no reason to refuse the request."""
    world.app()
    configuration = world.configuration(0)
    configuration["log"]["level"] = "trace"
    martlet = world.martlet_from(configuration)
    other = f"00-{'1' * 32}-{'2' * 16}-00"
    sent = {
        "header": as_record(request(device_token(1), id="header"), headers=[("traceparent", PARENT.encode())]),
        "field": as_record(request(device_token(2), id="field", traceparent=PARENT)),
        "both": as_record(
            request(device_token(3), id="both", traceparent=other), headers=[("traceparent", PARENT.encode())]
        ),
        "neither": as_record(request(device_token(4), id="neither")),
        "odd": as_record(request(device_token(5), id="odd", traceparent="00-xyz")),
        **{
            form: forms.record(request(device_token(6), id=form, traceparent=PARENT), form)
            for form in ("headers", "protobuf", "framed", "structured", "binary")
        },
    }
    traced = sent.keys() - {"neither", "odd"}
    world.send(sent.values())
    results = world.results.by_id(list(sent))
    for name in sent:
        expected = PARENT.encode() if name in traced else None
        assert results[name][0].header("traceparent") == expected, name

    def ended() -> list[dict]:
        lines = [json.loads(line) for line in martlet.text().splitlines()]
        return [line for line in lines if line["code"] == "ended"]

    until("all ends are told", lambda: len(ended()) == len(sent), 20)
    assert sum(line.get("trace_id") == TRACE for line in ended()) == len(traced)
    for line in ended():
        assert line["level"] == "trace"
        assert (line["app"], line["status"], line["topic"], line["index"]) == (
            "shop-ios",
            "delivered",
            "push.requests",
            0,
        )
        assert {"partition", "offset", "apns_id", "attempts", "duration_seconds"} <= set(line)


def test_a_terminal_gets_text_and_everything_else_json(world):
    """A broker that is not there: librdkafka's own lines are in both, and repeats are counted."""
    world.app()
    configuration = world.configuration(0)
    configuration["kafka"]["brokers"] = "127.0.0.1:9"
    del configuration["log"]["format"]
    martlet = world.martlet_from(configuration)
    until("librdkafka speaks", lambda: '"code":"kafka.' in martlet.text(), 30)
    lines = [json.loads(line) for line in martlet.text().splitlines()]
    assert all({"time", "level", "code", "message"} <= set(line) for line in lines)
    martlet.kill()

    screen, terminal = pty.openpty()
    text: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(screen, 1 << 16):
                text.append(part)
        except OSError:
            pass  # The other end is closed.

    reader = threading.Thread(target=read)
    reader.start()
    with subprocess.Popen(martlet.command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal) as program:
        os.close(terminal)
        try:
            until("it has started", lambda: b"[started]" in b"".join(text), 30)
        finally:
            program.kill()
    reader.join()
    os.close(screen)
    first = b"".join(text).decode().splitlines()[0]
    assert not first.startswith("{")
    assert first.split()[1] in ("INFO", "WARNING", "ERROR")
