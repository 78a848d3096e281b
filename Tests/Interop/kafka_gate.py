"""A broker's front door with TLS and SASL, for a cluster that has neither: clients log in here, and everything else
goes through to the embedded brokers.

Written from the Kafka protocol guide, RFC 5802 (SCRAM) and RFC 7628 (OAUTHBEARER); it shares no code with librdkafka.
"""

import asyncio
import base64
import hashlib
import hmac
import os
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import jwt

PRODUCE, FETCH, METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 0, 1, 3, 17, 18, 36
UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED = 33, 34, 58
LOOPBACK = b"127.0.0.1"


class Refused(Exception):
    """The credentials are not accepted; the text goes to the client, as brokers do it."""


class Scram:
    """One conversation of SCRAM-SHA-256 or -512 (RFC 5802, without channel binding)."""

    ITERATIONS = 4096

    def __init__(self, name: str, users: dict[str, str]):
        self.name, self.users = name, users
        self.hash = name.removeprefix("SCRAM-").replace("-", "").lower()
        self.first = ""

    def step(self, message: bytes) -> tuple[bytes, tuple[str, float | None] | None]:
        """The answer, and who it is once that is known."""
        text = message.decode()
        if not self.first:
            header, bare = text[:3], text[3:]
            assert header == "n,,", text
            fields = dict(part.split("=", 1) for part in bare.split(","))
            self.user = fields["n"]
            self.nonce = fields["r"] + base64.b64encode(os.urandom(12)).decode()
            self.salt = os.urandom(16)
            self.first = f"r={self.nonce},s={base64.b64encode(self.salt).decode()},i={self.ITERATIONS}"
            self.bare = bare
            return self.first.encode(), None
        without_proof, _, proof = text.rpartition(",p=")
        # Brokers look at the end of the nonce alone, and librdkafka before 2.8 puts its own part in front once more.
        if self.user not in self.users or not without_proof.endswith(self.nonce):
            raise Refused(f"Authentication failed during authentication due to invalid credentials with {self.name}")
        salted = hashlib.pbkdf2_hmac(self.hash, self.users[self.user].encode(), self.salt, self.ITERATIONS)
        client_key = hmac.digest(salted, b"Client Key", self.hash)
        stored_key = hashlib.new(self.hash, client_key).digest()
        everything = ",".join([self.bare, self.first, without_proof]).encode()
        signature = hmac.digest(stored_key, everything, self.hash)
        if bytes(a ^ b for a, b in zip(client_key, signature, strict=True)) != base64.b64decode(proof):
            raise Refused(f"Authentication failed during authentication due to invalid credentials with {self.name}")
        server_key = hmac.digest(salted, b"Server Key", self.hash)
        verifier = base64.b64encode(hmac.digest(server_key, everything, self.hash)).decode()
        return f"v={verifier}".encode(), (self.user, None)


class Bearer:
    """One conversation of OAUTHBEARER (RFC 7628): a JWT signed with a shared key."""

    def __init__(self, secret: str):
        self.secret, self.failed = secret, ""

    def step(self, message: bytes) -> tuple[bytes, tuple[str, float | None] | None]:
        if self.failed:
            raise Refused(self.failed)
        parts = message.split(b"\x01")
        assert parts[0] == b"n,,", message
        token = next(part for part in parts if part.startswith(b"auth=Bearer ")).removeprefix(b"auth=Bearer ")
        try:
            claims = jwt.decode(token.decode(), self.secret, algorithms=["HS256"])
        except jwt.InvalidTokenError as error:
            self.failed = f"{{invalid_token}}: {error}"
            return b'{"status":"invalid_token"}', None
        return b"", (claims["sub"], claims["exp"])


@dataclass
class Login:
    """Somebody who came in, or was kept out."""

    mechanism: str
    principal: str
    is_accepted: bool
    #: The subject of the client's certificate, where there is one.
    certificate: str = ""


@dataclass
class Gate:
    """Listens once for each broker of `bootstrap`. Without mechanisms anybody who gets through TLS is let in."""

    bootstrap: str
    tls: ssl.SSLContext | None = None
    mechanisms: dict[str, Callable[[], Scram | Bearer]] = field(default_factory=dict)
    #: While set, nobody is let in any more, and this is what they are told.
    refusal: str = ""
    logins: list[Login] = field(default_factory=list)
    #: Requests that went through, by API key.
    requests: Counter[int] = field(default_factory=Counter)
    #: Partitions of topics beyond this many are not shown to clients.
    shown_partitions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._upstreams = [int(address.rpartition(":")[2]) for address in self.bootstrap.split(",")]
        self._apis = self._ask_for_versions()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.ports = self._run(self._listen())
        self.address = ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def __enter__(self) -> "Gate":
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def drop(self) -> None:
        """Ends every connection."""
        self._loop.call_soon_threadsafe(self._abort)

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    # Connections.

    async def _listen(self) -> list[int]:
        self._servers = [
            await asyncio.start_server(partial(self._serve, upstream), "127.0.0.1", 0, ssl=self.tls, limit=1 << 22)
            for upstream in self._upstreams
        ]
        return [server.sockets[0].getsockname()[1] for server in self._servers]

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        self._abort()

    def _abort(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, upstream: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = {writer}
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", upstream, limit=1 << 22)
            writers.add(server_writer)
            self._writers |= writers
            session = Session(self, writer, server_writer)
            answers = asyncio.ensure_future(session.pass_answers(server_reader))
            try:
                await session.pass_requests(reader)
            finally:
                answers.cancel()
        except (OSError, EOFError, Refused):
            pass
        finally:
            for each in writers:
                each.close()
            self._writers -= writers

    # What brokers say of themselves.

    def _ask_for_versions(self) -> list[tuple[int, int, int]]:
        """The APIs of the cluster, and those of the gate; metadata no newer than this file can read."""
        question = struct.pack(">hhih", API_VERSIONS, 0, 1, -1)
        with socket.create_connection(("127.0.0.1", self._upstreams[0])) as probe, probe.makefile("rb") as answers:
            probe.sendall(struct.pack(">i", len(question)) + question)
            (size,) = struct.unpack(">i", answers.read(4))
            answer = answers.read(size)
        (count,) = struct.unpack_from(">i", answer, 6)
        apis = [struct.unpack_from(">hhh", answer, 10 + 6 * index) for index in range(count)]
        apis = [(key, low, min(high, 4) if key == METADATA else high) for key, low, high in apis]
        return [*apis, (SASL_HANDSHAKE, 0, 1), (SASL_AUTHENTICATE, 0, 1)]

    def versions(self, correlation: bytes, version: int) -> bytes:
        if version >= 3:
            listed = b"".join(struct.pack(">hhhb", *api, 0) for api in self._apis)
            return correlation + struct.pack(">hB", 0, len(self._apis) + 1) + listed + struct.pack(">iB", 0, 0)
        listed = b"".join(struct.pack(">hhh", *api) for api in self._apis)
        throttle = struct.pack(">i", 0) if version >= 1 else b""
        return correlation + struct.pack(">hi", 0, len(self._apis)) + listed + throttle

    def rewrite(self, frame: bytes) -> bytes:
        """The cluster's addresses become the gate's; both are the same number of bytes."""
        for upstream, port in zip(self._upstreams, self.ports, strict=True):
            frame = frame.replace(LOOPBACK + struct.pack(">i", upstream), LOOPBACK + struct.pack(">i", port))
        return frame


class Session:
    """One client's connection."""

    def __init__(self, gate: Gate, client: asyncio.StreamWriter, server: asyncio.StreamWriter):
        self.gate, self.client, self.server = gate, client, server
        self.mechanism, self.conversation = "", None
        self.is_in = not gate.mechanisms
        self.ends: float | None = None
        self.asked: dict[int, int] = {}
        certificate = client.get_extra_info("peercert") or {}
        subject = dict(part[0] for part in certificate.get("subject", ()))
        self.certificate = subject.get("commonName", "")
        if self.is_in:
            self._note("", self.certificate, not gate.refusal)
            if gate.refusal:
                raise Refused(gate.refusal)

    def _note(self, mechanism: str, principal: str, is_accepted: bool) -> None:
        self.gate.logins.append(Login(mechanism, principal, is_accepted, self.certificate))

    async def pass_requests(self, reader: asyncio.StreamReader) -> None:
        while True:
            frame = await receive_frame(reader)
            key, version, correlation = struct.unpack_from(">hhi", frame)
            # As brokers do when a session is over and the client has not logged in again.
            if self.ends is not None and time.time() > self.ends:
                raise Refused("the session is over")
            if key == API_VERSIONS:
                send_frame(self.client, self.gate.versions(frame[4:8], version))
            elif key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
                self._log_in(key, version, frame)
            elif not self.is_in:
                raise Refused("not logged in")
            else:
                self.gate.requests[key] += 1
                if key == METADATA:
                    self.asked[correlation] = version
                send_frame(self.server, frame)
                await self.server.drain()

    async def pass_answers(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                frame = await receive_frame(reader)
                (correlation,) = struct.unpack_from(">i", frame)
                version = self.asked.pop(correlation, 0)
                if version and self.gate.shown_partitions:
                    frame = hide_partitions(frame, version, self.gate.shown_partitions)
                send_frame(self.client, self.gate.rewrite(frame))
                await self.client.drain()
        except (OSError, EOFError):
            self.client.close()

    # SASL, KIP-152: each step is a request.

    def _log_in(self, key: int, version: int, frame: bytes) -> None:
        (length,) = struct.unpack_from(">h", frame, 8)
        body, correlation = frame[10 + max(0, length) :], frame[4:8]
        if key == SASL_HANDSHAKE:
            (size,) = struct.unpack_from(">h", body)
            self.mechanism = body[2 : 2 + size].decode()
            make = self.gate.mechanisms.get(self.mechanism)
            self.conversation = make() if make else None
            names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in self.gate.mechanisms)
            error = 0 if make else UNSUPPORTED_SASL_MECHANISM
            send_frame(self.client, correlation + struct.pack(">hi", error, len(self.gate.mechanisms)) + names)
            return
        (size,) = struct.unpack_from(">i", body)
        principal = None
        try:
            if self.gate.refusal:
                raise Refused(self.gate.refusal)
            if self.conversation is None:
                raise Refused("no mechanism was agreed on")
            answer, principal = self.conversation.step(body[4 : 4 + size])
            error, words = 0, struct.pack(">h", -1)
        except Refused as refused:
            text = str(refused).encode()
            answer, error = b"", SASL_AUTHENTICATION_FAILED
            words = struct.pack(">h", len(text)) + text
        lifetime = b""
        if version >= 1:
            ends = principal[1] if principal else None
            lifetime = struct.pack(">q", max(0, int((ends - time.time()) * 1000)) if ends else 0)
        send_frame(
            self.client,
            correlation + struct.pack(">h", error) + words + struct.pack(">i", len(answer)) + answer + lifetime,
        )
        if error:
            self._note(self.mechanism, "", False)
            raise Refused
        if principal:
            self.is_in, self.ends = True, principal[1]
            self._note(self.mechanism, principal[0], True)


def hide_partitions(frame: bytes, version: int, shown: dict[str, int]) -> bytes:
    """A Metadata answer (versions 1 to 4) without the partitions of `shown`'s topics from that number on."""
    at = 4 + (4 if version >= 3 else 0)

    def text(at: int) -> tuple[str, int]:
        (size,) = struct.unpack_from(">h", frame, at)
        return frame[at + 2 : at + 2 + max(0, size)].decode(), at + 2 + max(0, size)

    def integers(at: int) -> int:
        return at + 4 + 4 * struct.unpack_from(">i", frame, at)[0]

    (brokers,) = struct.unpack_from(">i", frame, at)
    at += 4
    for _ in range(brokers):
        _, at = text(at + 4)
        _, at = text(at + 4)
    if version >= 2:
        _, at = text(at)
    at += 4
    (topics,) = struct.unpack_from(">i", frame, at)
    at += 4
    made = [frame[:at]]
    for _ in range(topics):
        start = at
        name, at = text(at + 2)
        at += 1
        made.append(frame[start:at])
        (count,) = struct.unpack_from(">i", frame, at)
        at += 4
        kept = []
        for _ in range(count):
            start = at
            (number,) = struct.unpack_from(">i", frame, at + 2)
            at = integers(integers(at + 10))
            if number < shown.get(name, number + 1):
                kept.append(frame[start:at])
        made += [struct.pack(">i", len(kept)), *kept]
    return b"".join([*made, frame[at:]])


async def receive_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def send_frame(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(struct.pack(">i", len(frame)) + frame)
