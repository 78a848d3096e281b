"""A real Prometheus reads a service with all kinds of trouble: no panel of the dashboard is empty, what is recorded has
values, and the alerts that should fire do. Minutes are seconds here, in the rules as in the dashboard."""

import json
import re
import urllib.parse
import urllib.request
from itertools import cycle

import pytest
import yaml
from cryptography.hazmat.primitives import serialization

from apns_standin import Answer
from kafka_io import Outgoing
from processes import ROOT, Martlet, Program, free_port
from waiting import until
from world import as_record, device_token, request

RULES = ROOT / "helm/martlet/rules/martlet.yaml"
DASHBOARD = ROOT / "helm/martlet/dashboards/martlet.json"
#: Apps with a fault of their own each; `shop-ios` has none.
SICK = ("refused", "certificate", "unreachable", "throttled", "strangers", "rejected", "flaky")


def in_seconds(text: str) -> str:
    """A rule or a query with its minutes as seconds."""
    return re.sub(r"\b(\d+)m\b", r"\1s", text)


class Prometheus(Program):
    """Debian's, with a configuration of the test."""

    def __init__(self, directory, port: int, target: int):
        self.port = port
        directory.mkdir()
        rules = directory / "rules.yaml"
        rules.write_text(in_seconds(RULES.read_text(encoding="utf-8")))
        configuration = directory / "prometheus.yaml"
        configuration.write_text(
            yaml.safe_dump(
                {
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    "rule_files": [str(rules)],
                    "scrape_configs": [
                        {"job_name": "martlet", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
                    ],
                }
            )
        )
        super().__init__(
            ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={directory / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"],
            directory / "prometheus.log",
        )  # fmt: skip

    def ask(self, path: str, **fields: str) -> dict:
        query = urllib.parse.urlencode(fields)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout=10) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def values(self, query: str) -> list[float]:
        """The values that a query has now; those that are no numbers are left out."""
        result = self.ask("query", query=query)["result"]
        return [value for value in (float(each["value"][1]) for each in result) if value == value]

    def is_ready(self) -> bool:
        assert self.running, self.tail()
        try:
            return bool(self.values('up{job="martlet"} == 1'))
        except OSError:
            return False


@pytest.fixture
def sick(world):
    """A service whose apps have one fault each, and a Prometheus that reads it."""
    world.app()
    for number, name in enumerate(SICK):
        world.app(name, f"com.example.app{number}")
    # APNs knows no such key.
    stranger = world.key("KLM123NOPQ")
    world.app("refused", "com.example.refused", key=stranger)
    world.server.judge.keys = {"ABC123DEFG": world.server.judge.keys["ABC123DEFG"]}
    world.app("unreachable", "com.example.unreachable",
              server={"host": "127.0.0.1", "port": free_port(), "caFile": str(world.authority.authority)})  # fmt: skip

    port = free_port()
    configuration = world.configuration(
        port, attempts=3, retryBackoff={"initial": "50ms", "max": "200ms"}, maxInFlightPerApp=50
    )
    key, certificate = world.authority.client("com.example.certificate")
    identity = world.directory / "certificate.pem"
    identity.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    configuration["apps"]["certificate"] = {
        "bundleId": "com.example.certificate",
        "certificate": {"file": str(identity)},
        "server": {"host": "localhost", "port": world.server.port, "caFile": str(world.authority.authority)},
    }
    path = world.directory / "sick.json5"
    path.write_text(json.dumps(configuration))
    martlet = Martlet(world.binary, path, port, world.directory / "martlet.log")
    world.programs.append(martlet.start())
    martlet.wait_ready()
    prometheus = Prometheus(world.directory / "prometheus", free_port(), port)
    world.programs.append(prometheus.start())
    until("Prometheus reads the service", prometheus.is_ready, 30)
    return path, martlet, prometheus


def answers():
    """What APNs makes of the requests, by app."""
    throttled, stopped = Answer(429, "TooManyRequests"), Answer(goaway=0)
    flaky = cycle([Answer(), Answer(503, "ServiceUnavailable"), Answer(410, "Unregistered", timestamp=1), stopped,
                   Answer(reset=2), Answer(500, "InternalServerError")])  # fmt: skip

    def answer(seen):
        match seen.headers["apns-topic"]:
            case "com.example.app3":
                return throttled
            case "com.example.app4":
                return Answer(400, "BadDeviceToken")
            case "com.example.app5":
                return Answer(400, "PayloadTooLarge")
            case "com.example.app6":
                return next(flaky)
            case _:
                return Answer()

    return answer


def traffic(round_number: int):
    """A little of everything: some for each app, in more than one push type, and records that are no requests."""
    for app in ("shop-ios", *SICK):
        for number in range(4):
            yield as_record(request(device_token(round_number * 100 + number), app=app))
        yield as_record(request(device_token(round_number * 100 + 99), app=app, push_type="background",
                                payload={"aps": {"content-available": 1}}))  # fmt: skip
    yield as_record({"app": "shop-ios", "token": "no hex", "payload": {}, "id": f"bad-{round_number}"})
    yield as_record(request(device_token(1), app="nobody"))
    yield Outgoing(None, key=b"tombstone")


def test_no_panel_is_empty_and_the_alerts_fire(world, sick):
    path, _, prometheus = sick
    world.server.answer_by_default(answers())
    rounds = iter(range(1, 10_000))
    firing: set[tuple[str, str]] = set()
    empty: dict[str, str] = {}
    queries = {
        f"{panel['title']}: {target['expr']}": target["expr"]
        for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
        for target in panel.get("targets", [])
    }
    # A reload that is refused, for what says so.
    path.write_text(path.read_text().replace('"maxInFlightPerApp": 50', '"maxInFlightPerApp": -1'))

    def step(is_enough) -> bool:
        world.send(traffic(next(rounds)))
        for group in prometheus.ask("rules")["groups"]:
            for rule in group["rules"]:
                assert rule["health"] in ("ok", "unknown"), rule
                for alert in rule.get("alerts", []):
                    if alert["state"] == "firing":
                        firing.add((rule["name"], alert["labels"].get("app", "")))
        return is_enough()

    def shown() -> bool:
        """Panels show a range of time: it is enough that a query had a value at some moment of it."""
        for title, query in queries.items():
            if title in shown.seen:
                continue
            asked = query.replace("$job", "martlet").replace("$app", ".*").replace("$__rate_interval", "10s")
            if prometheus.values(in_seconds(asked)):
                shown.seen.add(title)
        empty.clear()
        empty.update({title: "" for title in queries.keys() - shown.seen})
        return not empty

    shown.seen = set()
    expected = {
        ("MartletCredentialRefused", "refused"),
        ("MartletCredentialRefused", "certificate"),
        ("MartletAppUnavailable", "refused"),
        ("MartletAppUnavailable", "unreachable"),
        ("MartletCertificateExpiring", "certificate"),
        ("MartletAppDeferred", "unreachable"),
        ("MartletThrottled", "throttled"),
        ("MartletFailures", "throttled"),
        ("MartletBadTokens", "strangers"),
        ("MartletRejections", "rejected"),
        ("MartletErrors", "rejected"),
        ("MartletInvalidRequests", ""),
        ("MartletReloadRefused", ""),
    }
    try:
        until("every panel shows something", lambda: step(shown), 60, pause=0.5)
    except AssertionError as error:
        raise AssertionError(f"empty: {sorted(empty)}") from error
    try:
        until("the alerts fire", lambda: step(lambda: expected <= firing), 90, pause=0.5)
    except AssertionError as error:
        raise AssertionError(f"not firing: {sorted(expected - firing)}\nfiring: {sorted(firing)}") from error
    # Nothing is said of the app that has no fault, nor of what is not so.
    assert not {alert for alert, app in firing if app == "shop-ios"}
    for group in prometheus.ask("rules")["groups"]:
        for rule in group["rules"]:
            assert rule["health"] == "ok", rule
            if rule["name"] in ("MartletAbsent", "MartletNoProgress", "MartletPublicationFailures"):
                assert rule["state"] != "firing", rule
            if rule["type"] == "recording":
                assert prometheus.values(rule["name"]), rule["name"]
