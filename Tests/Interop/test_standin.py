"""The stand-in itself, seen through nghttp: what the other tests lean on must hold."""

import socket
import ssl
import subprocess
import time

import h2.connection
import jwt
import pytest

from apns_standin import Answer, APNsStandIn
from credentials import CertificateAuthority, make_signing_key
from waiting import until


@pytest.fixture
def key(tmp_path):
    return make_signing_key(tmp_path, "ABC123DEFG", "DEF123GHIJ")


@pytest.fixture
def server(tmp_path, key):
    identity = CertificateAuthority(tmp_path).issue()
    with APNsStandIn(identity.certificate, identity.key, {key.key_id: (key.team_id, key.public_pem)}) as running:
        yield running


def provider_token(key, *, team=None, kid=None, issued_at=None):
    claims = {"iss": team or key.team_id, "iat": int(time.time()) if issued_at is None else issued_at}
    return jwt.encode(claims, key.file.read_text(), algorithm="ES256", headers={"kid": kid or key.key_id})


def push(server, tmp_path, token, bearer, *, times=1, timeout=5):
    """What nghttp prints for POSTs of one body."""
    body = tmp_path / "body"
    body.write_bytes(b'{"aps":{"alert":"Hello"}}')
    headers = ["apns-topic: com.example.shop", "apns-id: 123e4567-e89b-42d3-a456-426614174000"]
    if bearer:
        headers.append(f"authorization: bearer {bearer}")
    command = ["nghttp", "-v", "-d", str(body), "-t", str(timeout), "-m", str(times), "-H", ":method: POST"]
    for header in headers:
        command += ["-H", header]
    command.append(f"https://127.0.0.1:{server.port}/3/device/{token}")
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout


def test_a_good_token_is_answered_200_and_widens_the_connection(server, key, tmp_path):
    printed = push(server, tmp_path, "aa11", provider_token(key))
    assert ":status: 200" in printed
    assert "SETTINGS_MAX_CONCURRENT_STREAMS(0x03):1]" in printed
    assert "SETTINGS_MAX_CONCURRENT_STREAMS(0x03):1000]" in printed
    (seen,) = server.seen
    assert seen.body == b'{"aps":{"alert":"Hello"}}'
    assert seen.headers["apns-topic"] == "com.example.shop"
    assert seen.claims["kid"] == "ABC123DEFG"
    assert not server.violations


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"team": "OTHER67890"}, "InvalidProviderToken"),
        ({"kid": "UNKNOWN123"}, "InvalidProviderToken"),
        ({"issued_at": 1_700_000_000}, "ExpiredProviderToken"),
        (None, "MissingProviderToken"),
    ],
)
def test_a_bad_provider_token_is_refused_with_its_reason(server, key, tmp_path, case, reason):
    bearer = None if case is None else provider_token(key, **case)
    printed = push(server, tmp_path, "aa11", bearer)
    assert ":status: 403" in printed
    assert reason in printed
    assert "SETTINGS_MAX_CONCURRENT_STREAMS(0x03):1000]" not in printed


def test_a_signature_of_another_key_is_refused(server, tmp_path):
    other = make_signing_key(tmp_path, "ABC123DEFG", "DEF123GHIJ")
    assert "InvalidProviderToken" in push(server, tmp_path, "aa11", provider_token(other))


def test_answers_come_one_after_another_and_the_last_stays(server, key, tmp_path):
    server.answer("aa11", Answer(503, "ServiceUnavailable"), Answer(410, "Unregistered", timestamp=5, pieces=3))
    bearer = provider_token(key)
    assert ":status: 503" in push(server, tmp_path, "aa11", bearer)
    for _ in range(2):
        printed = push(server, tmp_path, "AA11", bearer)
        assert ":status: 410" in printed
        assert printed.count("recv DATA frame") == 3


def test_streams_beyond_the_limit_are_noted(server, key):
    # A client that takes 100 streams for granted and does not wait for the SETTINGS.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    engine = h2.connection.H2Connection()
    engine.initiate_connection()
    for stream in (1, 3):
        engine.send_headers(
            stream,
            [(":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", "/3/device/aa11"),
             ("authorization", f"bearer {provider_token(key)}")],
        )  # fmt: skip
    with (
        socket.create_connection(("127.0.0.1", server.port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        secured.sendall(engine.data_to_send())
        until("the breach is noted", lambda: server.violations)
    assert "TooManyStreams" in server.violations[0]


def test_goaway_leaves_the_socket_open(server, key, tmp_path):
    server.answer("aa11", Answer(goaway=0, reason="Shutdown"))
    printed = push(server, tmp_path, "aa11", provider_token(key), timeout=2)
    assert "recv GOAWAY frame" in printed
    assert ":status:" not in printed
    until("the client leaves by itself", lambda: not server._live, 10)


def test_a_reset_stream_gets_no_answer(server, key, tmp_path):
    server.answer("aa11", Answer(reset=2))
    assert "recv RST_STREAM frame" in push(server, tmp_path, "aa11", provider_token(key), timeout=2)


def test_capitals_and_extra_headers(server, key, tmp_path):
    server.answer("aa11", Answer(capitals=True, headers=(("apns-unique-id", "unique"),)))
    printed = push(server, tmp_path, "aa11", provider_token(key))
    assert "apns-id: 123E4567-E89B-42D3-A456-426614174000" in printed
    assert "apns-unique-id: unique" in printed
