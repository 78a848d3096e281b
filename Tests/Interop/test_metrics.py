"""The three pages that the platform looks at."""

import re
import subprocess
import urllib.request
import uuid

from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from apns_standin import Answer
from processes import Martlet, free_port, parse_metrics
from waiting import until
from world import as_record, device_token, request


def test_the_metrics_page_is_what_prometheus_wants(world):
    martlet = world.martlet().wait_ready()
    world.server.answer(device_token(7), Answer(410, "Unregistered", timestamp=1))
    world.send([as_record(request(device_token(number))) for number in range(100)])
    world.results.count(100)
    text = martlet.metrics_text()
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=30, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert not checked.stderr.strip(), checked.stderr

    names = {re.match(r"[a-zA-Z_:][a-zA-Z0-9_:]*", series)[0] for series in parse_metrics(text)}
    assert all(name.startswith(("martlet_", "process_")) for name in names), names
    assert text.count("# HELP") == text.count("# TYPE")
    for series in parse_metrics(text):
        assert device_token(7) not in series


def test_another_reader_understands_both_formats(world):
    """The parsers of Prometheus' Python client; that of OpenMetrics is strict."""
    martlet = world.martlet().wait_ready()
    world.send([as_record(request(device_token(number))) for number in range(50)])
    world.results.count(50)

    def scrape(accept: str) -> tuple[str, str]:
        asked = urllib.request.Request(f"http://127.0.0.1:{martlet.http_port}/metrics", headers={"Accept": accept})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    kind, text = scrape("text/plain")
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    plain = {family.name: family for family in parser.text_string_to_metric_families(text)}
    kind, text = scrape("application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    strict = {family.name: family for family in openmetrics_parser.text_string_to_metric_families(text)}
    # One calls information a gauge with a longer name.
    assert set(plain) - {"martlet_build_info"} == set(strict) - {"martlet_build"}
    for name, family in strict.items():
        assert family.documentation
        if name.endswith("_seconds"):
            assert family.unit == "seconds", name
    sent = strict["martlet_send_to_answer_seconds"].samples
    assert next(one.value for one in sent if one.name.endswith("_count")) == 50
    for name in ("martlet_provider_token_issued_timestamp_seconds", "martlet_app_available", "martlet_open_streams"):
        assert [sample.labels for sample in strict[name].samples if sample.labels["app"] != "unknown"] == [
            {"app": "shop-ios"}
        ], name


def test_the_number_of_series_is_bounded(world):
    """A thousand app names, reasons and push types that nobody configured add only what is fixed beforehand."""
    martlet = world.martlet().wait_ready()
    world.server.answer_by_default(lambda seen: Answer(400, f"Reason{seen.token}"))
    world.send([as_record(request(device_token(1)))])
    world.results.count(1)
    strange = [request(device_token(number), app=f"app-{uuid.uuid4()}") for number in range(1000)]
    strange += [request(device_token(number)) for number in range(1000, 2000)]
    strange += [
        request(device_token(number), push_type=f"type{chr(97 + number % 26)}", topic="com.example.other")
        for number in range(2000, 2100)
    ]
    world.send([as_record(one) for one in strange])
    world.results.by_id([one["id"] for one in strange], timeout=90)
    series = martlet.metrics()
    assert len(series) < 800, sorted(series)
    assert not any("Reason0" in name or "app-" in name for name in series)


def test_health_and_readiness(world):
    """Without a broker the process lives and is not ready; once there is one, it is."""
    world.app()
    port = free_port()
    configuration = world.configuration(port)
    broker = world.kafka
    configuration["kafka"]["brokers"] = f"127.0.0.1:{free_port()}"
    path = world.directory / "no-broker.json5"
    path.write_text(str(configuration).replace("'", '"'))
    alone = Martlet(world.binary, path, port, world.directory / "no-broker.log")
    world.programs.append(alone)
    alone.start()
    until("it answers", lambda: alone.get("/healthz")[0] == 200, 20)
    assert alone.get("/readyz")[0] == 503
    assert alone.running
    assert alone.terminate() == 0, alone.tail()

    martlet = world.martlet().wait_ready()
    assert martlet.get("/healthz")[0] == 200
    assert martlet.get("/nothing-here")[0] == 404
    assert broker.running
