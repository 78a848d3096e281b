"""Brokers that want TLS, client certificates, passwords or tokens, and refuse what is wrong, at once or later."""

import json
import ssl
import subprocess
import threading
import time
from pathlib import Path

import jwt
import pytest

from contract import check_result
from kafka_gate import Bearer, Gate, Scram
from processes import Martlet
from waiting import until
from world import World, as_record, device_token, request

USER, PASSWORD = "martlet", "correct horse"
TOKEN_KEY = "the key of a token service that nobody else knows"


def server_tls(world: World, asks_for_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(world.identity.certificate, world.identity.key)
    if asks_for_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(world.authority.authority)
    return context


def use(world: World, gate: Gate, **properties: object) -> None:
    """Has the service come in through the gate."""
    world.kafka_settings["brokers"] = gate.address
    named = {name.replace("__", "."): value for name, value in properties.items()}
    if gate.tls is not None:
        named["ssl.ca.location"] = str(world.authority.authority)
    world.kafka_properties.update(named)


def password_file(world: World, password: str = PASSWORD) -> dict[str, str]:
    path = world.directory / "password"
    path.write_text(password + "\n")
    return {"file": str(path)}


def scram(name: str) -> dict:
    return {name: lambda: Scram(name, {USER: PASSWORD})}


def deliver(world: World, first: int, count: int) -> None:
    asked = [request(device_token(number)) for number in range(first, first + count)]
    world.send([as_record(one) for one in asked])
    found = world.results.by_id([one["id"] for one in asked])
    for one in asked:
        assert [check_result(record)["status"] for record in found[one["id"]]] == ["delivered"]


def kafka_fault(martlet: Martlet) -> str:
    """Why /readyz says that Kafka refuses the service; empty when it does not."""
    _, body = martlet.get("/readyz")
    checks = json.loads(body)["checks"] if body else []
    return next((check.get("why", "") for check in checks if check["check"] == "kafka"), "")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_over_tls(world, mechanism):
    with Gate(world.kafka.bootstrap, server_tls(world), scram(mechanism)) as gate:
        use(
            world, gate, security__protocol="SASL_SSL", sasl__mechanism=mechanism, sasl__username=USER,
            sasl__password=password_file(world),
        )  # fmt: skip
        martlet = world.martlet().wait_ready()
        deliver(world, 0, 50)
        assert martlet.terminate() == 0
        assert {(login.mechanism, login.principal, login.is_accepted) for login in gate.logins} == {
            (mechanism, USER, True)
        }
        assert PASSWORD not in martlet.text()


def test_tls_with_a_client_certificate(world):
    identity = world.authority.issue("martlet-client")
    with Gate(world.kafka.bootstrap, server_tls(world, asks_for_certificate=True)) as gate:
        use(
            world, gate, security__protocol="SSL", ssl__certificate__location=str(identity.certificate),
            ssl__key__location=str(identity.key),
        )  # fmt: skip
        martlet = world.martlet().wait_ready()
        deliver(world, 0, 50)
        assert martlet.terminate() == 0
        assert {login.certificate for login in gate.logins} == {"martlet-client"}


class TokenFile:
    """What a platform does: a token in a file, replaced before it ends."""

    LIFETIME = 4.0

    def __init__(self, path: Path):
        self.path, self.issued = path, 0
        self._stop = threading.Event()
        self.renew()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def renew(self, lifetime: float = LIFETIME) -> None:
        self.issued += 1
        claims = {"sub": "martlet-service", "exp": int(time.time() + lifetime), "jti": str(self.issued)}
        fresh = self.path.with_suffix(".new")
        fresh.write_text(jwt.encode(claims, TOKEN_KEY, algorithm="HS256"))
        fresh.rename(self.path)

    def _run(self) -> None:
        while not self._stop.wait(self.LIFETIME * 0.5):
            self.renew()

    def __enter__(self) -> "TokenFile":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)


def test_a_token_from_a_file_is_read_again(world):
    """The brokers end each session with its token; the service comes back with the one that the file has then."""
    with (
        Gate(world.kafka.bootstrap, server_tls(world), {"OAUTHBEARER": lambda: Bearer(TOKEN_KEY)}) as gate,
        TokenFile(world.directory / "token") as tokens,
    ):
        world.kafka_settings["oauthTokenFile"] = str(tokens.path)
        use(world, gate, security__protocol="SASL_SSL", sasl__mechanism="OAUTHBEARER")
        martlet = world.martlet().wait_ready()
        started, number = time.monotonic(), 0
        while time.monotonic() - started < 2 * TokenFile.LIFETIME:
            deliver(world, number, 20)
            number += 20
            time.sleep(0.5)
        assert tokens.issued >= 3
        assert {login.principal for login in gate.logins if login.is_accepted} == {"martlet-service"}
        # Two clients, some connections each, and a new one of each for every token.
        assert sum(login.is_accepted for login in gate.logins) > 4
        assert martlet.terminate() == 0
        assert "eyJ" not in martlet.text()
        assert len(world.server.seen) == number


def test_what_is_refused_at_the_start_is_told_and_goes_on_when_it_is_mended(world):
    gate_users = {USER: "another password"}
    mechanism = "SCRAM-SHA-256"
    with Gate(world.kafka.bootstrap, None, {mechanism: lambda: Scram(mechanism, gate_users)}) as gate:
        use(
            world, gate, security__protocol="SASL_PLAINTEXT", sasl__mechanism=mechanism, sasl__username=USER,
            sasl__password=password_file(world),
        )  # fmt: skip
        martlet = world.martlet()
        fault = until("/readyz tells", lambda: kafka_fault(martlet), 30)
        assert "invalid credentials" in fault
        assert martlet.get("/readyz")[0] == 503
        assert martlet.get("/healthz")[0] == 200
        assert '"kafka_refused"' in martlet.text()
        checked = subprocess.run(
            [martlet.command[0], "check", "--config", martlet.command[3], "--connect"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert checked.returncode != 0
        assert "invalid credentials" in checked.stdout + checked.stderr
        assert PASSWORD not in martlet.text() + checked.stdout + checked.stderr
        gate_users[USER] = PASSWORD
        until("it is let in", lambda: '"partitions_assigned"' in martlet.text(), 40)
        deliver(world, 0, 20)
        assert martlet.terminate() == 0


def test_what_is_refused_in_flight_loses_nothing(world):
    mechanism = "SCRAM-SHA-512"
    with Gate(world.kafka.bootstrap, None, scram(mechanism)) as gate:
        use(
            world, gate, security__protocol="SASL_PLAINTEXT", sasl__mechanism=mechanism, sasl__username=USER,
            sasl__password=password_file(world), reconnect__backoff__max__ms=500,
        )  # fmt: skip
        martlet = world.martlet().wait_ready()
        deliver(world, 0, 50)
        asked = [request(device_token(number)) for number in range(50, 1050)]
        gate.refusal = "Authentication failed: the account is disabled"
        world.send([as_record(one) for one in asked])
        gate.drop()
        # Another request may fail first, and say less.
        until("/readyz tells why", lambda: "the account is disabled" in (kafka_fault(martlet) or ""), 30)
        assert martlet.running
        gate.refusal = ""
        found = world.results.by_id([one["id"] for one in asked])
        assert all(check_result(record)["status"] == "delivered" for one in asked for record in found[one["id"]])
        assert martlet.terminate() == 0
