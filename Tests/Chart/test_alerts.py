"""The alerts: Prometheus takes them, they ask for what exists, and each fires when it should and not before."""

import json
import re
import subprocess

import pytest
import yaml

import catalogue
from chart_docs import ROOT
from rendering import Rendered, rendered, values

POD = 'namespace="push",pod="demo-martlet-6d5f7c9b8-x2x4z"'


def _rules(directory, made: Rendered):
    path = directory / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": made.one("PrometheusRule")["spec"]["groups"]}))
    return path


def _promtool(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("way", ["monitors", "statefulset"])
def test_prometheus_takes_the_rules(way, tmp_path):
    checked = _promtool("check", "rules", "--lint=all", "--lint-fatal", _rules(tmp_path, rendered(way)))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_alerts_ask_for_metrics_that_exist():
    for rule in rendered("statefulset").alerts:
        assert catalogue.faults(rule["expr"]) == [], rule["alert"]
        assert "martlet_" in rule["expr"]


def test_a_metric_that_does_not_exist_would_be_noticed():
    assert len(catalogue.FAMILIES) > 30
    for query, fault in (
        ('rate(martlet_notification_total{pod="a"}[5m])', "there is no metric martlet_notification_total"),
        ('martlet_notifications_total{state="x"}', "martlet_notifications_total has no label state"),
        ('martlet_notifications_total{status="fialed"}', "no status is fialed"),
        ('martlet_rejections_total{reason=~"BadDeviceToken|BadTokken"}', "no reason is BadTokken"),
        ("martlet_end_to_end_seconds", "martlet_end_to_end_seconds is a histogram"),
    ):
        assert catalogue.faults(query) == [fault]


def test_the_alerts_look_at_the_pods_of_the_release_alone():
    for way, pods in (("statefulset", "demo-martlet-[0-9]+"), ("monitors", "demo-martlet-[a-z0-9]+-[a-z0-9]+")):
        for rule in rendered(way).alerts:
            if "alert" in rule:
                assert rule["expr"].count(f'namespace="push",pod=~"{pods}"') == rule["expr"].count("martlet_")


def test_alerts_have_labels_for_their_routing_and_can_be_left_out():
    rules = [each for each in rendered("monitors").alerts if "alert" in each]
    assert {each["labels"]["team"] for each in rules} == {"push"}
    assert {each["labels"]["severity"] for each in rules} == {"critical", "warning"}
    assert all(each["annotations"]["runbook_url"].endswith(each["alert"]) for each in rules)
    names = [each["alert"] for each in rules]
    assert "MartletIdleReplica" not in names
    assert len(set(names)) == len(names) == len(rendered("statefulset").alerts) - 1
    assert rendered("monitors").alerts[-1]["record"] == "martlet:delivered:rate5m"


def test_the_topic_of_deferred_requests_does_not_count_as_lag():
    made = Rendered(values(prometheusRule={"enabled": True}, config__kafka__topics={"deferred": "later"}))
    (lag,) = [each for each in made.alerts if each["alert"] == "MartletConsumerLag"]
    assert 'topic!="later"' in lag["expr"]


def test_the_page_about_kubernetes_names_metrics_and_alerts_that_exist():
    page = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    assert set(re.findall(r"martlet_\w+", page)) <= set(catalogue.FAMILIES)
    known = {each["alert"] for each in Rendered(values(prometheusRule={"enabled": True})).alerts}
    named = set(re.findall(r"`(Martlet\w+)`", page))
    assert named == known - {"MartletReloadRefused"}


def _buckets(name: str, **shares: str) -> list[tuple[str, str]]:
    return [(f'martlet_{name}_bucket{{le="{bound}",{POD}}}', values) for bound, values in shares.items()]


ATTEMPTS = (f'martlet_attempts_total{{app="shop",{POD}}}', "0+100x60")
#: For each alert: the series of an hour that make it fire, and those that do not.
CASES = {
    "MartletAbsent": ([], [(f"martlet_build_info{{{POD}}}", "1x60")]),
    "MartletConsumerLag": (
        [
            (f'martlet_consumer_lag_records{{topic="push.requests",partition="0",{POD}}}', "30000x60"),
            (f'martlet_consumer_lag_records{{topic="push.requests",partition="1",{POD}}}', "30000x60"),
        ],
        [
            (f'martlet_consumer_lag_records{{topic="push.requests",partition="0",{POD}}}', "30000x60"),
            (f'martlet_consumer_lag_records{{topic="push.deferred",partition="0",{POD}}}', "90000x60"),
        ],
    ),
    "MartletSlowDelivery": (
        _buckets("end_to_end_seconds", **{"30": "0+50x60", "60": "0+100x60", "+Inf": "0+100x60"}),
        _buckets("end_to_end_seconds", **{"30": "0+100x60", "60": "0+100x60", "+Inf": "0+100x60"}),
    ),
    "MartletFailures": (
        [
            (f'martlet_notifications_total{{app="shop",status="failed",{POD}}}', "0+10x60"),
            (f'martlet_notifications_total{{app="shop",status="delivered",{POD}}}', "0+90x60"),
        ],
        [
            (f'martlet_notifications_total{{app="shop",status="failed",{POD}}}', "0+1x60"),
            (f'martlet_notifications_total{{app="shop",status="delivered",{POD}}}', "0+99x60"),
        ],
    ),
    "MartletRejections": (
        [ATTEMPTS, (f'martlet_rejections_total{{app="shop",reason="PayloadTooLarge",{POD}}}', "0+20x60")],
        [ATTEMPTS, (f'martlet_rejections_total{{app="shop",reason="Unregistered",{POD}}}', "0+20x60")],
    ),
    "MartletBadTokens": (
        [ATTEMPTS, (f'martlet_rejections_total{{app="shop",reason="BadDeviceToken",{POD}}}', "0+90x60")],
        [ATTEMPTS, (f'martlet_rejections_total{{app="shop",reason="BadDeviceToken",{POD}}}', "0+10x60")],
    ),
    "MartletAppDeferred": (
        [(f'martlet_deferred_total{{app="shop",{POD}}}', "0+1x60")],
        [(f'martlet_deferred_total{{app="shop",{POD}}}', "5x60")],
    ),
    "MartletConnectFailures": (
        [(f'martlet_connections_closed_total{{app="shop",cause="tls",{POD}}}', "0+1x60")],
        [(f'martlet_connections_closed_total{{app="shop",cause="idle",{POD}}}', "0+1x60")],
    ),
    "MartletThrottled": (
        [ATTEMPTS, (f'martlet_retries_total{{app="shop",cause="throttled",{POD}}}', "0+10x60")],
        [ATTEMPTS, (f'martlet_retries_total{{app="shop",cause="lost",{POD}}}', "0+10x60")],
    ),
    "MartletInvalidRequests": (
        [
            (f'martlet_requests_invalid_total{{rule="MissingField",{POD}}}', "0+2x60"),
            (f"martlet_records_consumed_total{{{POD}}}", "0+100x60"),
        ],
        [
            (f'martlet_requests_invalid_total{{rule="MissingField",{POD}}}', "0+2x60"),
            (f"martlet_records_consumed_total{{{POD}}}", "0+1000x60"),
        ],
    ),
    "MartletPublicationFailures": (
        [(f'martlet_publication_failures_total{{topic="results",{POD}}}', "0+1x60")],
        [(f'martlet_publication_failures_total{{topic="results",{POD}}}', "1x60")],
    ),
    "MartletCommitFailures": (
        [(f"martlet_commit_failures_total{{{POD}}}", "0+1x60")],
        [(f"martlet_commit_failures_total{{{POD}}}", "3x60")],
    ),
    "MartletKafkaErrors": (
        [(f"martlet_kafka_errors_total{{{POD}}}", "0+5x60")],
        [(f"martlet_kafka_errors_total{{{POD}}}", "0+1x60")],
    ),
    "MartletRebalancing": (
        [(f"martlet_rebalances_total{{{POD}}}", "0+1x60")],
        [(f"martlet_rebalances_total{{{POD}}}", "3x60")],
    ),
    "MartletPaused": (
        [(f"martlet_paused_partitions{{{POD}}}", "2x60")],
        [
            (
                f"martlet_paused_partitions{{{POD}}}",
                "2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0" + " 2 0" * 16,
            )
        ],
    ),
    "MartletIdleReplica": (
        [(f"martlet_assigned_partitions{{{POD}}}", "0x60")],
        [(f"martlet_assigned_partitions{{{POD}}}", "1x60")],
    ),
    "MartletReloadRefused": (
        [(f"martlet_reload_failures_total{{{POD}}}", "0x50 1x10")],
        [(f"martlet_reload_failures_total{{{POD}}}", "1x60")],
    ),
}


def test_every_alert_has_its_case():
    made = Rendered(values(prometheusRule={"enabled": True}))
    assert {each["alert"] for each in made.alerts} == set(CASES)


def _unit_test(alert: str, series: list[tuple[str, str]], expected: list[dict]) -> dict:
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series],
        "alert_rule_test": [{"eval_time": "59m", "alertname": alert, "exp_alerts": expected}],
    }


def test_each_alert_fires_when_it_should_and_not_before(tmp_path):
    made = Rendered(values(prometheusRule={"enabled": True}))
    rules = _rules(tmp_path, made)
    quiet = [_unit_test(alert, silent, []) for alert, (_, silent) in CASES.items()]
    loud = {alert: _unit_test(alert, firing, []) for alert, (firing, _) in CASES.items()}
    path = tmp_path / "tests.yaml"

    def run(tests: list[dict]) -> subprocess.CompletedProcess:
        path.write_text(json.dumps({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": tests}))
        return _promtool("test", "rules", path)

    silent = run(quiet)
    assert silent.returncode == 0, silent.stdout + silent.stderr
    # Every one of these must fail, as it expects no alert where there is one.
    for alert, test in loud.items():
        fired = run([test])
        assert fired.returncode != 0, f"{alert} did not fire"
        assert f'alertname="{alert}"' in fired.stdout + fired.stderr
