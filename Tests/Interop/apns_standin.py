"""An APNs look-alike on the `h2` package: a second opinion on HTTP/2, TLS and provider tokens.

It behaves as Apple's pages say: one stream at a time until a request with a good provider token has been answered,
1,000 afterwards; `apns-id` in each answer; reasons in JSON. What it answers is set by device token or by a function;
what it saw is kept, in order. It runs in a thread of the test, or as a program of its own (`python apns_standin.py`).
"""

import argparse
import asyncio
import functools
import json
import random
import re
import signal
import ssl
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import jwt
from hyperframe.frame import GoAwayFrame

STREAMS_AT_FIRST = 1
STREAMS_LATER = 1000
TOKEN_LIFETIME = 3600
CANONICAL_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Answer:
    """What the stand-in does with one request."""

    status: int = 200
    reason: str | None = None
    #: Milliseconds since 1970, for 410.
    timestamp: int | None = None
    #: The whole body, in place of the JSON with the reason.
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    #: Seconds before the answer.
    delay: float = 0
    #: How many DATA frames the body is split into.
    pieces: int = 1
    #: Give the apns-id back in capitals.
    capitals: bool = False
    #: Reset the stream with this code in place of an answer.
    reset: int | None = None
    #: Send GOAWAY with this code and leave the socket open. The stream itself counts as not processed.
    goaway: int | None = None
    #: Never answer.
    silent: bool = False

    def content(self) -> bytes:
        if self.body is not None:
            return self.body
        if self.status == 200 and self.reason is None:
            return b""
        fields: dict[str, object] = {"reason": self.reason}
        if self.timestamp is not None:
            fields["timestamp"] = self.timestamp
        return json.dumps(fields).encode()


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    connection: int
    stream: int
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float
    #: The claims of its provider token together with `kid`; empty when there was none or it was bad.
    claims: Mapping[str, object] = field(default_factory=dict)
    #: The `UID` in the certificate that the client has shown.
    client: str | None = None

    @property
    def token(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Handshake:
    """How TLS began on one connection."""

    version: str
    resumed: bool
    #: The `UID` in the client's certificate.
    client: str | None


class ProviderTokenJudge:
    """Checks provider tokens with PyJWT, as Apple's page "Establishing a token-based connection" describes them."""

    def __init__(self, keys: Mapping[str, tuple[str, str]]):
        #: Key id to team id and public key (PEM).
        self.keys = keys
        self._judge = functools.lru_cache(maxsize=4096)(self._judge_once)

    def judge(self, authorization: str | None) -> tuple[str | None, Mapping[str, object]]:
        """The reason for a refusal or `None`, and the claims."""
        if authorization is None:
            return "MissingProviderToken", {}
        return self._judge(authorization)

    def _judge_once(self, authorization: str) -> tuple[str | None, Mapping[str, object]]:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return "MissingProviderToken", {}
        try:
            header = jwt.get_unverified_header(token)
            team, public = self.keys[header["kid"]]
            claims = jwt.decode(
                token, public, algorithms=["ES256"], issuer=team, leeway=5, options={"require": ["iss", "iat"]}
            )
        except (jwt.InvalidTokenError, KeyError):
            return "InvalidProviderToken", {}
        if not isinstance(claims["iat"], int) or isinstance(claims["iat"], bool):
            return "InvalidProviderToken", {}
        if abs(time.time() - claims["iat"]) > TOKEN_LIFETIME:
            return "ExpiredProviderToken", {}
        return None, {**claims, "kid": header["kid"], "alg": header["alg"]}


class _FrameSplitter:
    """Takes the GOAWAY frames out of what a client sends.

    The engine would take the connection for closed and refuse to answer what is open, while RFC 9113 (section 6.8) has
    those streams finish.
    """

    PREFACE_LENGTH = 24
    GOAWAY = 7

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._preface_left = self.PREFACE_LENGTH

    def split(self, data: bytes) -> tuple[bytes, list[int]]:
        """What is for the engine, and the error codes of the GOAWAYs."""
        passed = data[: self._preface_left]
        self._preface_left -= len(passed)
        self._buffer += data[len(passed) :]
        kept, codes, start = bytearray(passed), [], 0
        while len(self._buffer) - start >= 9:
            end = start + 9 + int.from_bytes(self._buffer[start : start + 3])
            if len(self._buffer) < end:
                break
            if self._buffer[start + 3] == self.GOAWAY:
                codes.append(int.from_bytes(self._buffer[start + 13 : start + 17]))
            else:
                kept += self._buffer[start:end]
            start = end
        del self._buffer[:start]
        return bytes(kept), codes


class _Connection(asyncio.Protocol):
    """One client's connection. All calls come from the stand-in's own loop."""

    def __init__(self, server: "APNsStandIn"):
        self.server = server
        self.engine = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.open: dict[int, tuple[dict[str, str], bytearray]] = {}
        self.frames = _FrameSplitter()
        self.number = -1
        self.client: str | None = None
        self.team: object = None
        self.key: object = None
        self.widened = False
        self.gone_above: int | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport):
        self.transport = transport
        tls = transport.get_extra_info("ssl_object")
        subject = (tls.getpeercert() or {}).get("subject", ())
        self.client = next((value for entry in subject for name, value in entry if name in ("userId", "UID")), None)
        self.number = self.server._connected(self, Handshake(tls.version() or "", tls.session_reused, self.client))
        self.engine.local_settings = h2.settings.Settings(
            client=False,
            initial_values={
                h2.settings.SettingCodes.HEADER_TABLE_SIZE: 4096,
                h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: (
                    self.server.streams_at_first if self.client is None else self.server.streams_later
                ),
                h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: 8000,
                h2.settings.SettingCodes.ENABLE_PUSH: 0,
            },
        )
        self.engine.initiate_connection()
        self._flush()

    def connection_lost(self, exc):  # noqa: ARG002
        self.server._disconnected(self)

    def data_received(self, data):
        frames, partings = self.frames.split(data)
        for code in partings:
            self.server._left(self.number, code)
        try:
            events = self.engine.receive_data(frames)
        except h2.exceptions.ProtocolError as error:
            self.server._violated(f"connection {self.number}: {type(error).__name__}: {error}")
            self._flush()
            self.transport.close()
            return
        for event in events:
            self._handle(event)
        self._flush()

    def _handle(self, event):
        match event:
            case h2.events.RequestReceived():
                self._opened(event.stream_id, dict(event.headers), [name for name, _ in event.headers])
            case h2.events.DataReceived():
                self.engine.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if event.stream_id in self.open:
                    self.open[event.stream_id][1].extend(event.data)
            case h2.events.StreamEnded() if event.stream_id in self.open:
                headers, body = self.open.pop(event.stream_id)
                self._arrived(event.stream_id, headers, bytes(body))
            case h2.events.StreamReset():
                self.open.pop(event.stream_id, None)

    def _opened(self, stream: int, headers: dict[str, str], names: list[str]):
        if self.gone_above is not None and stream > self.gone_above:
            self.server._ignored(self.number, time.monotonic())
            return
        if len(names) != len(set(names)):
            self.server._violated(f"a header twice: {names}")
        self.open[stream] = (headers, bytearray())

    def _arrived(self, stream: int, headers: dict[str, str], body: bytes):
        refusal, claims = self._judge(headers)
        seen = Seen(self.number, stream, headers.get(":path", ""), headers, body, time.monotonic(), claims, self.client)
        answer = self.server._saw(seen)
        if refusal is not None:
            answer = Answer(403, refusal)
        elif headers.get(":method") not in self.server.methods:
            answer = Answer(405, "MethodNotAllowed")
        if answer.silent:
            return
        if answer.delay > 0:
            asyncio.get_running_loop().call_later(answer.delay, self._answer_late, seen, answer)
        else:
            self._answer(seen, answer)

    def _judge(self, headers: dict[str, str]) -> tuple[str | None, Mapping[str, object]]:
        """A connection belongs to the team and the key of its first good request; a certificate stands for both."""
        if self.client is not None:
            return None, {}
        refusal, claims = self.server.judge.judge(headers.get("authorization"))
        if refusal is not None:
            return refusal, claims
        if self.team not in (None, claims["iss"]):
            return "InvalidProviderToken", claims
        if self.key not in (None, claims["kid"]):
            return "UnrelatedKeyIdInToken", claims
        self.team, self.key = claims["iss"], claims["kid"]
        return None, claims

    def _answer_late(self, seen: Seen, answer: Answer):
        if not self.transport.is_closing():
            self._answer(seen, answer)
            self._flush()

    def _answer(self, seen: Seen, answer: Answer):
        try:
            if answer.goaway is not None:
                self._go_away(seen.stream - 2 if seen.stream > 1 else 0, answer)
            elif answer.reset is not None:
                self.engine.reset_stream(seen.stream, answer.reset)
            else:
                self._respond(seen, answer)
        except (h2.exceptions.StreamClosedError, h2.exceptions.NoSuchStreamError):
            pass  # The client has given this stream up.
        except h2.exceptions.ProtocolError:
            if not self.transport.is_closing():
                self.transport.close()

    def _go_away(self, last: int, answer: Answer):
        # Written by hand: the engine would take the connection for closed, while Apple still answers what is open.
        self._flush()
        data = json.dumps({"reason": answer.reason}).encode() if answer.reason else b""
        frame = GoAwayFrame(0, last_stream_id=last, error_code=answer.goaway, additional_data=data)
        self.transport.write(frame.serialize())
        self.gone_above = last

    def _respond(self, seen: Seen, answer: Answer):
        if answer.status == 200 and not self.widened:
            self.widened = True
            self.engine.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self.server.streams_later})
        identifier = seen.headers.get("apns-id") or str(uuid.uuid4())
        headers = [
            (":status", str(answer.status)),
            ("apns-id", identifier.upper() if answer.capitals else identifier),
            *answer.headers,
        ]
        content = answer.content()
        self.engine.send_headers(seen.stream, headers, end_stream=not content)
        if content:
            size = -(-len(content) // answer.pieces)
            pieces = [content[start : start + size] for start in range(0, len(content), size)]
            for index, piece in enumerate(pieces):
                self.engine.send_data(seen.stream, piece, end_stream=index == len(pieces) - 1)
                if answer.pieces > 1:
                    self._flush()

    def _flush(self):
        if data := self.engine.data_to_send():
            self.transport.write(data)


Decider = Callable[[Seen], Answer]


class APNsStandIn:
    """The server. `start` and `stop` may be called from any thread; so may everything that reads or sets answers."""

    def __init__(
        self,
        certificate: Path,
        key: Path,
        keys: Mapping[str, tuple[str, str]],
        *,
        streams_at_first: int = STREAMS_AT_FIRST,
        streams_later: int = STREAMS_LATER,
        client_authority: Path | None = None,
        tls_version: str | None = None,
    ):
        self.judge = ProviderTokenJudge(keys)
        self.streams_at_first = streams_at_first
        self.streams_later = streams_later
        self.port = 0
        self.by_default: Answer | Decider = Answer()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.load_cert_chain(certificate, key)
        self._context.set_alpn_protocols(["h2"])
        if client_authority is not None:
            self._context.load_verify_locations(client_authority)
            self._context.verify_mode = ssl.CERT_OPTIONAL
        if tls_version is not None:
            self._context.minimum_version = self._context.maximum_version = ssl.TLSVersion[tls_version]
        self._lock = threading.Lock()
        #: What may be asked; the management of channels has more.
        self.methods = {"POST"}
        self._answers: dict[str, list[Answer]] = {}
        self._seen: list[Seen] = []
        self._violations: list[str] = []
        self._late: list[tuple[int, float]] = []
        self._partings: list[tuple[int, int]] = []
        self._connections = 0
        self._handshakes: list[Handshake] = []
        self._live: set[_Connection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # What it answers.

    def answer(self, token: str, *answers: Answer) -> None:
        """The answers for a device token, one after another; the last one stays."""
        with self._lock:
            self._answers[token.lower()] = list(answers)

    def answer_by_default(self, answer: Answer | Decider) -> None:
        """For every token without answers of its own: an answer, or a function of the request."""
        self.by_default = answer

    # What it saw.

    @property
    def seen(self) -> list[Seen]:
        with self._lock:
            return list(self._seen)

    def seen_for(self, token: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.token.lower() == token.lower()]

    @property
    def violations(self) -> list[str]:
        """Breaches of HTTP/2 or of the stream limit by a client."""
        with self._lock:
            return list(self._violations)

    @property
    def ignored_after_goaway(self) -> list[tuple[int, float]]:
        """Requests on a connection that had been told to go away: connection and time."""
        with self._lock:
            return list(self._late)

    @property
    def partings(self) -> list[tuple[int, int]]:
        """The GOAWAYs that clients sent: connection and error code."""
        with self._lock:
            return list(self._partings)

    @property
    def handshakes(self) -> list[Handshake]:
        """One for each connection, in their order."""
        with self._lock:
            return list(self._handshakes)

    @property
    def connections(self) -> int:
        with self._lock:
            return self._connections

    # Life.

    def start(self) -> "APNsStandIn":
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="apns-stand-in", daemon=True)
        self._thread.start()
        assert started.wait(10), "the stand-in did not start"
        return self

    def stop(self) -> None:
        if self._loop is not None and self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)

    def __enter__(self) -> "APNsStandIn":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def listen(self) -> asyncio.Server:
        """Binds a port that the kernel chooses, on the running loop."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, ssl=self._context, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def _run(self, started: threading.Event) -> None:
        loop = asyncio.new_event_loop()
        self._loop = loop
        # Clients that vanish in the middle of a handshake are part of the tests.
        loop.set_exception_handler(lambda *_: None)
        server = loop.run_until_complete(self.listen())
        started.set()
        try:
            loop.run_forever()
        finally:
            server.close()
            for connection in list(self._live):
                connection.transport.abort()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    # Called by connections.

    def _connected(self, connection: _Connection, handshake: Handshake) -> int:
        with self._lock:
            self._live.add(connection)
            self._handshakes.append(handshake)
            self._connections += 1
            return self._connections

    def _disconnected(self, connection: _Connection) -> None:
        with self._lock:
            self._live.discard(connection)

    def _violated(self, what: str) -> None:
        with self._lock:
            self._violations.append(what)

    def _ignored(self, connection: int, at: float) -> None:
        with self._lock:
            self._late.append((connection, at))

    def _left(self, connection: int, code: int) -> None:
        with self._lock:
            self._partings.append((connection, int(code)))

    def _saw(self, seen: Seen) -> Answer:
        with self._lock:
            self._seen.append(seen)
            if answers := self._answers.get(seen.token.lower()):
                return answers.pop(0) if len(answers) > 1 else answers[0]
        return self.by_default(seen) if callable(self.by_default) else self.by_default


class Journalist(APNsStandIn):
    """Keeps one line for each request (`apns-id`, token, connection) in a file and nothing in memory."""

    def __init__(self, *arguments, journal: Path, fault_rate: float, seed: int, **options):
        super().__init__(*arguments, **options)
        self._journal = journal.open("a", buffering=1 << 16)
        self._random = random.Random(seed)
        self._fault_rate = fault_rate

    def flush(self) -> None:
        self._journal.flush()

    def _saw(self, seen: Seen) -> Answer:
        self._journal.write(f"{seen.headers.get('apns-id', '-')} {seen.token} {seen.connection}\n")
        if self._random.random() >= self._fault_rate:
            return Answer()
        return self._random.choice(
            [
                Answer(503, "ServiceUnavailable"),
                Answer(delay=0.2),
                Answer(reset=int(h2.errors.ErrorCodes.REFUSED_STREAM)),
                Answer(410, "Unregistered", timestamp=1_783_245_053_444),
                Answer(429, "TooManyRequests"),
            ]
        )


async def _serve(options: argparse.Namespace) -> None:
    keys = {
        key_id: (team, Path(path).read_text())
        for key_id, team, path in (entry.split(":", 2) for entry in options.signing_key)
    }
    server = Journalist(
        options.certificate, options.key, keys, journal=options.journal, fault_rate=options.fault_rate,
        seed=options.seed,
    )  # fmt: skip
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)
    finish = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, finish.set)
    listener = await server.listen()
    print(json.dumps({"host": "127.0.0.1", "port": server.port}), flush=True)
    while not finish.is_set():
        server.flush()
        await asyncio.sleep(0.1)
    listener.close()
    server.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="An APNs stand-in that keeps a journal of the requests it saw.")
    parser.add_argument("--certificate", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--signing-key", action="append", default=[], metavar="KEYID:TEAM:PUBLIC_PEM_FILE")
    parser.add_argument("--fault-rate", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    asyncio.run(_serve(parser.parse_args(arguments)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
