"""The HTTP endpoint against clients that mean no good, on real sockets, while notifications go on."""

import http.client
import json
import os
import random
import socket
import threading
import time
from contextlib import ExitStack, closing, suppress

import pytest

from waiting import until
from world import World, as_record, device_token, request

# They share what takes long to start.
pytestmark = pytest.mark.xdist_group("endpoint")


def connect(martlet) -> socket.socket:
    return socket.create_connection(("127.0.0.1", martlet.http_port), timeout=20)


def said(client: socket.socket) -> bytes:
    """All that is answered until the server closes."""
    parts = []
    while part := client.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def ask(martlet, path: str, method: str = "GET", headers: dict[str, str] | None = None):
    with closing(http.client.HTTPConnection("127.0.0.1", martlet.http_port, timeout=20)) as client:
        client.request(method, path, headers=headers or {})
        answer = client.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


def test_hostile_clients_keep_neither_probes_nor_notifications_waiting(world):
    martlet = world.martlet().wait_ready()
    stop = threading.Event()
    seconds: list[float] = []

    def probe() -> None:
        while not stop.wait(0.05):
            start = time.monotonic()
            try:
                status = ask(martlet, "/healthz")[0]
            except OSError:
                status = 503
            if status == 200:
                seconds.append(time.monotonic() - start)

    prober = threading.Thread(target=probe)
    prober.start()
    with ExitStack() as clients:
        try:
            # Those that connect and say nothing, or a letter now and then.
            silent = [clients.enter_context(closing(connect(martlet))) for _ in range(150)]
            for client in silent[:60]:
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nX: ")
            # One that asks and does not take its answers.
            greedy = clients.enter_context(closing(connect(martlet)))
            greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            greedy.settimeout(0.5)
            wanted = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 2000
            with suppress(OSError):
                greedy.sendall(wanted)
            # Garbage, again and again.
            noise = random.Random(1)
            for _ in range(40):
                with closing(connect(martlet)) as client:
                    try:
                        client.sendall(noise.randbytes(noise.randrange(1, 4000)) + b"\r\n\r\n")
                        client.shutdown(socket.SHUT_WR)
                        answer = said(client)
                        assert not answer or answer.startswith(b"HTTP/1.1 4") or answer.startswith(b"HTTP/1.1 5")
                    except OSError:
                        pass
            world.send([as_record(request(device_token(number))) for number in range(300)])
            world.results.count(300)
            count = len(seconds)
            until("probes are answered meanwhile", lambda: len(seconds) >= count + 5, 30)
        finally:
            stop.set()
            prober.join()
    assert martlet.running
    assert martlet.resident_bytes(peak=True) < 300 << 20
    assert ask(martlet, "/readyz")[0] == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (b"GET http://other/healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200),
        (b"GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404),
        (b"GET /healthz\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400),
        (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 3000 + b"\r\n", 431),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ],
)
def test_odd_requests_have_their_answer_and_no_other(shared, sent, status):
    with closing(connect(shared)) as client:
        client.sendall(sent)
        answer = said(client)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1


def test_pipelined_requests_are_answered_in_order(shared):
    with closing(connect(shared)) as client:
        paths = [b"/healthz", b"/readyz", b"/nothing"] * 50
        last = b"GET /healthz HTTP/1.0\r\n\r\n"
        client.sendall(b"".join(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % path for path in paths) + last)
        answers = said(client).split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200", b"200", b"404"] * 50 + [b"200"]


def test_head_is_get_without_a_body(shared):
    for path in ("/", "/metrics", "/healthz", "/readyz", "/status.json"):
        status, headers, body = ask(shared, path, "HEAD")
        assert (status, body) == (200, b"")
        assert int(headers["Content-Length"]) > 0
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_unix_socket_and_nothing_but_yes_and_no(world):
    world.app()
    configuration = world.configuration(0)
    path = world.directory / "martlet.sock"
    configuration["http"] = {"listen": f"unix:{path}", "statusPage": False, "healthDetails": False}
    martlet = world.martlet_from(configuration)

    def ask_there(target: str) -> tuple[int, str]:
        with closing(socket.socket(socket.AF_UNIX)) as client:
            client.settimeout(20)
            client.connect(os.fspath(path))
            client.sendall(f"GET {target} HTTP/1.0\r\n\r\n".encode())
            head, _, body = said(client).decode().partition("\r\n\r\n")
            return int(head.split()[1]), body

    def is_ready() -> bool:
        assert martlet.running, martlet.tail()
        try:
            return ask_there("/readyz")[0] == 200
        except OSError:
            return False

    until("it is ready", is_ready, 30)
    assert json.loads(ask_there("/readyz")[1]) == {"status": "ready"}
    assert json.loads(ask_there("/healthz")[1]) == {"status": "live"}
    assert ask_there("/")[0] == ask_there("/status.json")[0] == 404
    assert "martlet_build_info" in ask_there("/metrics")[1]
    assert martlet.terminate() == 0, martlet.tail()
    assert not path.exists()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A service that many tests ask things of."""
    made = World(tmp_path_factory.mktemp("shared"))
    try:
        yield made.martlet().wait_ready()
    finally:
        made.close()
