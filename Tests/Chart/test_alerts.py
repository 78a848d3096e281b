"""The rules: Prometheus takes them, they ask for what exists, each alert fires when it should and not before, and has
its page. helm/martlet/rules/martlet.yaml is the one source; the chart makes it fit a release."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

import catalogue
from chart_docs import CHART, ROOT
from rendering import Rendered, chart, rendered, values

SOURCE = CHART / "rules" / "martlet.yaml"
GROUPS = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = [rule for rule in RULES if "alert" in rule]
POD = 'job="martlet",instance="martlet-0:9464"'


def _promtool(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=30, check=False)


def test_prometheus_takes_the_rules():
    checked = _promtool("check", "rules", "--lint=all", "--lint-fatal", SOURCE)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("way", ["monitors", "statefulset"])
def test_prometheus_takes_the_rules_of_a_release(way, tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": rendered(way).one("PrometheusRule")["spec"]["groups"]}))
    checked = _promtool("check", "rules", "--lint=all", "--lint-fatal", path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_rules_ask_for_metrics_that_exist():
    for rule in RULES:
        assert catalogue.faults(rule["expr"]) == [], rule.get("alert")
        assert rule["expr"].count('job="martlet"') == catalogue.count(rule["expr"]) > 0


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


def test_the_rules_of_a_release_look_at_its_pods_alone():
    for way, pods in (("statefulset", "demo-martlet-[0-9]+"), ("monitors", "demo-martlet-[a-z0-9]+-[a-z0-9]+")):
        made = rendered(way).one("PrometheusRule")["spec"]["groups"][: len(GROUPS)]
        for rule in [rule for group in made for rule in group["rules"]]:
            assert rule["expr"].count(f'namespace="push",pod=~"{pods}"') == catalogue.count(rule["expr"])
            assert "instance" not in json.dumps(rule)
            if "record" in rule:
                assert rule["labels"] == {"namespace": "push", "release": "demo"}


def test_the_rules_of_a_release_are_those_of_the_source():
    made = Rendered(values(prometheusRule={"enabled": True})).rules
    assert len(made) == len(RULES)
    pods = 'namespace="push",pod=~"demo-martlet-[a-z0-9]+-[a-z0-9]+"'
    for own, source in zip(made, RULES, strict=True):
        # With the chart's own thresholds nothing but the selector differs: they are the numbers of the source.
        expected = source["expr"].replace('job="martlet"', pods).replace("(instance)", "(pod)")
        assert own["expr"] == expected
        for part in ("alert", "record", "for"):
            assert own.get(part) == source.get(part)


def test_every_threshold_of_the_values_is_that_of_an_alert():
    thresholds = chart().values["prometheusRule"]["thresholds"]
    described = chart().schema["properties"]["prometheusRule"]["properties"]["thresholds"]["properties"]
    before = {rule["alert"]: rule["expr"] for rule in Rendered(values(prometheusRule={"enabled": True})).alerts}
    for name in thresholds:
        value = 0 if name.endswith("Ratio") else 7
        given = {"enabled": True, "thresholds": {name: value}}
        after = {rule["alert"]: rule["expr"] for rule in Rendered(values(prometheusRule=given)).alerts}
        (changed,) = [alert for alert in before if before[alert] != after[alert]]
        assert f"({changed})" in described[name]["description"]
        number = value * 86400 if name.endswith("Days") else value
        assert re.search(rf"[<>] {number}$", after[changed])


def test_alerts_have_labels_for_their_routing_and_can_be_left_out():
    made = rendered("monitors")
    assert {each["labels"]["team"] for each in made.alerts} == {"push"}
    assert {each["labels"]["severity"] for each in made.alerts} == {"critical", "warning", "info"}
    assert all(each["annotations"]["runbook_url"].endswith(each["alert"]) for each in made.alerts)
    names = [each["alert"] for each in made.alerts]
    assert "MartletIdleReplica" not in names
    assert len(set(names)) == len(names) == len(ALERTS) - 1
    assert made.rules[-1]["record"] == "martlet:delivered:rate5m"


def test_the_topic_of_deferred_requests_does_not_count_as_lag():
    made = Rendered(values(prometheusRule={"enabled": True}, config__kafka__topics={"deferred": "later"}))
    (lag,) = [each for each in made.alerts if each["alert"] == "MartletConsumerLag"]
    assert 'topic!="later"' in lag["expr"]
    (parked,) = [each for each in made.alerts if each["alert"] == "MartletParkedGrowing"]
    assert 'topic="later"' in parked["expr"]


def test_the_pages_name_metrics_and_alerts_that_exist():
    known = {each["alert"] for each in ALERTS}
    for page in ("kubernetes.md", "operations.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        named = {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"martlet_\w+", text)}
        assert named <= set(catalogue.FAMILIES), page
        assert set(re.findall(r"\b(Martlet[A-Z]\w+)", text)) <= known, page


def test_every_alert_has_its_section_in_the_runbook():
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (Martlet\w+)\n\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    assert set(sections) == {each["alert"] for each in ALERTS}
    for alert, text in sections.items():
        for part in ("**Means.**", "**Look.**", "**Do.**"):
            assert part in text, f"{alert} has no {part}"


def _buckets(name: str, **shares: str) -> list[tuple[str, str]]:
    return [(f'martlet_{name}_bucket{{le="{bound}",{POD}}}', values) for bound, values in shares.items()]


ATTEMPTS = (f'martlet_attempts_total{{app="shop",{POD}}}', "0+100x60")
#: For each alert: the series of an hour that make it fire, and those that do not.
CASES = {
    "MartletAbsent": ([], [(f"martlet_build_info{{{POD}}}", "1x60")]),
    "MartletNoProgress": (
        [
            (f'martlet_publications_total{{topic="results",{POD}}}', "500x60"),
            (f'martlet_consumer_lag_records{{topic="push.requests",partition="0",{POD}}}', "10x60"),
        ],
        [
            (f'martlet_publications_total{{topic="results",{POD}}}', "500x60"),
            (f'martlet_consumer_lag_records{{topic="push.requests",partition="0",{POD}}}', "0x60"),
            (f'martlet_consumer_lag_records{{topic="push.deferred",partition="0",{POD}}}', "10x60"),
        ],
    ),
    "MartletStuck": (
        [(f"martlet_stuck_loops{{{POD}}}", "0x50 1x10")],
        # One that was looked at while it hung, and turned again.
        [(f"martlet_stuck_loops{{{POD}}}", "0x58 1x1 0x1")],
    ),
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
    "MartletLagGrowing": (
        [(f'martlet_consumer_lag_records{{topic="push.requests",partition="0",{POD}}}', "0+100x60")],
        # A burst of every ten minutes, dealt with before the next.
        [(f'martlet_consumer_lag_records{{topic="push.requests",partition="0",{POD}}}', "9000-900x9 " * 6)],
    ),
    "MartletErrors": (
        [
            (f'martlet_notifications_total{{app="shop",status="rejected",{POD}}}', "0+60x60"),
            (f'martlet_notifications_total{{app="shop",status="delivered",{POD}}}', "0+40x60"),
        ],
        [
            # None is delivered, but it is one in three hours.
            (f'martlet_notifications_total{{app="shop",status="rejected",{POD}}}', "0x58 1x2"),
            # One record in 60,000 breaks the contract, and counts under no app.
            (f'martlet_notifications_total{{app="unknown",status="invalid",{POD}}}', "0+1x60"),
            (f'martlet_notifications_total{{app="bank",status="delivered",{POD}}}', "0+60000x60"),
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
    "MartletExpired": (
        [
            (f'martlet_notifications_total{{app="shop",status="expired",{POD}}}', "0+10x60"),
            (f'martlet_notifications_total{{app="shop",status="delivered",{POD}}}', "0+90x60"),
        ],
        [
            (f'martlet_notifications_total{{app="shop",status="expired",{POD}}}', "0+1x60"),
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
    "MartletCredentialRefused": (
        [(f'martlet_rejections_total{{app="shop",reason="InvalidProviderToken",{POD}}}', "0x55 1x5")],
        [(f'martlet_rejections_total{{app="shop",reason="Unregistered",{POD}}}', "0+10x60")],
    ),
    "MartletAppUnavailable": (
        [(f'martlet_app_available{{app="shop",{POD}}}', "1x40 0x20")],
        # A minute's trouble does not count.
        [(f'martlet_app_available{{app="shop",{POD}}}', "1x55 0x5")],
    ),
    "MartletCertificateExpiring": (
        [(f'martlet_certificate_expiry_timestamp_seconds{{app="shop",{POD}}}', f"{86400 * 20}x60")],
        [(f'martlet_certificate_expiry_timestamp_seconds{{app="shop",{POD}}}', f"{86400 * 22}x60")],
    ),
    "MartletAppDeferred": (
        [(f'martlet_deferred_total{{app="shop",{POD}}}', "0+1x60")],
        [(f'martlet_deferred_total{{app="shop",{POD}}}', "5x60")],
    ),
    "MartletParkedGrowing": (
        [(f'martlet_consumer_lag_records{{topic="push.deferred",partition="0",{POD}}}', "0+100x60")],
        [(f'martlet_consumer_lag_records{{topic="push.deferred",partition="0",{POD}}}', "90000x60")],
    ),
    "MartletConnectionChurn": (
        [(f'martlet_connections_opened_total{{app="shop",{POD}}}', "0+10x60")],
        [(f'martlet_connections_opened_total{{app="shop",{POD}}}', "0+2x60")],
    ),
    "MartletResent": (
        [ATTEMPTS, (f'martlet_resent_total{{app="shop",{POD}}}', "0+5x60")],
        # One connection that broke, and nothing since.
        [ATTEMPTS, (f'martlet_resent_total{{app="shop",{POD}}}', "0x20 50x40")],
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
    "MartletUnknownFields": (
        [
            (f"martlet_unknown_fields_total{{{POD}}}", "0+5x60"),
            (f"martlet_requests_decoded_total{{{POD}}}", "0+100x60"),
        ],
        [
            (f"martlet_unknown_fields_total{{{POD}}}", "5x60"),
            (f"martlet_requests_decoded_total{{{POD}}}", "0+100x60"),
        ],
    ),
    "MartletOutputBlocked": (
        [(f'martlet_output_blocked{{topic="results",{POD}}}', "0x50 1x10")],
        # Brokers that are restarted one by one.
        [(f'martlet_output_blocked{{topic="results",{POD}}}', "0 1 " * 30)],
    ),
    "MartletProducerFailures": (
        [(f"martlet_producer_failures_total{{{POD}}}", "0x20 1x10 2x10 3x10 4x10")],
        [(f"martlet_producer_failures_total{{{POD}}}", "0x40 1x20")],
    ),
    "MartletPublicationFailures": (
        [(f'martlet_publication_failures_total{{topic="results",{POD}}}', "0+1x60")],
        [(f'martlet_publication_failures_total{{topic="results",{POD}}}', "1x60")],
    ),
    "MartletCommitFailures": (
        [(f"martlet_commit_failures_total{{{POD}}}", "0+60x60"), (f"martlet_commits_total{{{POD}}}", "0+60x60")],
        # Rebalances one after the other: some commits are refused, the others get through.
        [(f"martlet_commit_failures_total{{{POD}}}", "0+2x60"), (f"martlet_commits_total{{{POD}}}", "0+60x60")],
    ),
    "MartletKafkaErrors": (
        [(f"martlet_kafka_errors_total{{{POD}}}", "0+5x60")],
        [(f"martlet_kafka_errors_total{{{POD}}}", "0+1x60")],
    ),
    "MartletRebalancing": (
        [(f"martlet_rebalances_total{{{POD}}}", "0+1x60")],
        [(f"martlet_rebalances_total{{{POD}}}", "3x60")],
    ),
    "MartletIntakeHeld": (
        [(f"martlet_intake_held{{{POD}}}", "1x60")],
        [(f"martlet_intake_held{{{POD}}}", "1 0 " * 30)],
    ),
    "MartletIdleReplica": (
        # It has some of the deferred topic, and none of the requests.
        [
            (f"martlet_assigned_partitions{{{POD}}}", "1x60"),
            (f'martlet_consumer_lag_records{{topic="push.deferred",partition="0",{POD}}}', "0x60"),
        ],
        [
            (f"martlet_assigned_partitions{{{POD}}}", "1x60"),
            (f'martlet_consumer_lag_records{{topic="push.requests",partition="0",{POD}}}', "0x60"),
        ],
    ),
    "MartletDescriptors": (
        [(f"process_open_fds{{{POD}}}", "900x60"), (f"process_max_fds{{{POD}}}", "1024x60")],
        [(f"process_open_fds{{{POD}}}", "90x60"), (f"process_max_fds{{{POD}}}", "1024x60")],
    ),
    "MartletReloadRefused": (
        [(f"martlet_last_reload_successful{{{POD}}}", "1x50 0x10")],
        [(f"martlet_last_reload_successful{{{POD}}}", "0x50 1x10")],
    ),
}


def _tested(tests: list[dict], directory: Path) -> subprocess.CompletedProcess:
    """What promtool finds when it plays these unit tests of the rules."""
    path = directory / "tests.yaml"
    path.write_text(json.dumps({"rule_files": [str(SOURCE)], "evaluation_interval": "1m", "tests": tests}))
    return _promtool("test", "rules", path)


def test_every_alert_has_its_case():
    assert {each["alert"] for each in ALERTS} == set(CASES)


def test_a_replica_without_any_partition_is_idle_too(tmp_path):
    others = 'job="martlet",instance="martlet-1:9464"'
    series = [
        (f"martlet_assigned_partitions{{{POD}}}", "0x60"),
        (f"martlet_assigned_partitions{{{others}}}", "8x60"),
        (f'martlet_consumer_lag_records{{topic="push.requests",partition="0",{others}}}', "7x60"),
    ]
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series],
        "promql_expr_test": [
            {
                "expr": 'count by (instance) (ALERTS{alertname="MartletIdleReplica",alertstate="firing"})',
                "eval_time": "59m",
                "exp_samples": [{"labels": '{instance="martlet-0:9464"}', "value": 1}],
            }
        ],
    }
    checked = _tested([test], tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def _unit_test(alert: str, series: list[tuple[str, str]], expected: list[dict]) -> dict:
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series],
        "alert_rule_test": [{"eval_time": "59m", "alertname": alert, "exp_alerts": expected}],
    }


def test_each_alert_fires_when_it_should_and_not_before(tmp_path):
    quiet = [_unit_test(alert, silent, []) for alert, (_, silent) in CASES.items()]
    loud = {alert: _unit_test(alert, firing, []) for alert, (firing, _) in CASES.items()}
    silent = _tested(quiet, tmp_path)
    assert silent.returncode == 0, silent.stdout + silent.stderr
    # Every one of these must fail, as it expects no alert where there is one.
    for alert, test in loud.items():
        fired = _tested([test], tmp_path)
        assert fired.returncode != 0, f"{alert} did not fire"
        assert f'alertname="{alert}"' in fired.stdout + fired.stderr
        assert "%!" not in fired.stdout, fired.stdout


def test_what_is_recorded_is_what_its_name_says(tmp_path):
    series = [
        (f'martlet_notifications_total{{app="shop",status="delivered",{POD}}}', "0+60x60"),
        (f'martlet_notifications_total{{app="shop",status="failed",{POD}}}', "0+20x60"),
        (f'martlet_notifications_total{{app="unknown",status="invalid",{POD}}}', "0+3x60"),
        (f'martlet_attempts_total{{app="shop",{POD}}}', "0+120x60"),
        (f'martlet_rejections_total{{app="shop",reason="Unregistered",{POD}}}', "0+30x60"),
        (f'martlet_consumer_lag_records{{topic="push.requests",partition="0",{POD}}}', "3x60"),
        (f'martlet_consumer_lag_records{{topic="push.requests",partition="1",{POD}}}', "4x60"),
        *_buckets("end_to_end_seconds", **{"1": "0+100x60", "2": "0+100x60", "+Inf": "0+100x60"}),
    ]
    expected = {
        "martlet:notifications:rate5m": {
            'app="shop", status="delivered"': 1,
            'app="shop", status="failed"': 1 / 3,
            'app="unknown", status="invalid"': 0.05,
        },
        "martlet:attempts:rate5m": {'app="shop"': 2},
        "martlet:rejections:rate5m": {'app="shop", reason="Unregistered"': 0.5},
        "martlet:errors:ratio5m": {'app="shop"': 0.25},
        "martlet:end_to_end_seconds:p99_5m": {"": 0.99},
        "martlet:consumer_lag_records:sum": {'topic="push.requests"': 7},
    }
    assert set(expected) == {each["record"] for each in RULES if "record" in each}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series],
        "promql_expr_test": [
            {
                "expr": f"round({record}, 0.0001)",
                "eval_time": "59m",
                "exp_samples": [
                    {"labels": f"{{{labels}}}", "value": round(value, 4)} for labels, value in samples.items()
                ],
            }
            for record, samples in expected.items()
        ],
    }
    checked = _tested([test], tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
