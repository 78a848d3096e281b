"""`martlet topics`, and what `martlet check --connect` says of topics, against a stand-in for a controller."""

import json

import pytest

from kafka_standin import KafkaStandIn, Topic
from test_command_line import USAGE, configured, martlet

DATA, UNAVAILABLE = 65, 69
NAMES = ["push.requests", "push.results", "push.invalid-tokens", "push.dead-letters", "push.deferred"]
DAY = 86_400_000


@pytest.fixture
def kafka():
    with KafkaStandIn() as made:
        yield made


@pytest.fixture
def config(world, kafka):
    return configured(world, kafka={"brokers": kafka.bootstrap})


def report(ended):
    return {topic["topic"]: topic for topic in json.loads(ended.stdout)["topics"]}


def create(config, *words):
    return martlet("topics", "create", "--config", config, "--replication-factor", 1, *words)


def test_topics_are_made_once_with_what_their_use_needs(config, kafka):
    planned = create(config, "--dry-run", "--json")
    assert planned.returncode == 0, planned
    assert {topic["state"] for topic in report(planned).values()} == {"planned"}
    assert not kafka.topics

    made = create(config, "--topic", "push.requests:3", "--setting", f"push.results:retention.ms={DAY}")
    assert made.returncode == 0, made
    assert made.stdout.count(": created, ") == 5
    assert kafka.topics == {
        "push.requests": Topic(3, 1, {"cleanup.policy": "delete", "retention.ms": str(7 * DAY)}),
        "push.results": Topic(8, 1, {"cleanup.policy": "delete", "retention.ms": str(DAY)}),
        "push.invalid-tokens": Topic(4, 1, {"cleanup.policy": "compact"}),
        "push.dead-letters": Topic(4, 1, {"cleanup.policy": "delete", "retention.ms": str(30 * DAY)}),
        "push.deferred": Topic(8, 1, {"cleanup.policy": "delete", "retention.ms": str(7 * DAY)}),
    }

    again = create(config, "--json")
    assert again.returncode == 0, again
    assert {topic["state"] for topic in report(again).values()} == {"exists"}
    assert not any(topic["remarks"] for topic in report(again).values())
    assert kafka.creations == 5
    checked = martlet("topics", "check", "--config", config)
    assert checked.returncode == 0, checked
    assert "✓ push.invalid-tokens: exists, 4 partitions, 1 replica, compacted" in checked.stdout


def test_what_exists_is_kept_and_its_differences_are_told(config, kafka):
    kafka.topics["push.requests"] = Topic(2, 1, {"retention.ms": "1000"})
    ended = create(config, "--partitions", 6, "--setting", "push.requests:retention.ms=2000", "--json")
    assert ended.returncode == 0, ended
    topics = report(ended)
    assert topics["push.requests"]["state"] == "exists"
    assert {each["subject"]: (each["found"], each["wanted"]) for each in topics["push.requests"]["remarks"]} == {
        "partitions": ("2", "6"),
        "retention.ms": ("1000", "2000"),
    }
    assert topics["push.results"]["state"] == "created"
    assert kafka.topics["push.requests"] == Topic(2, 1, {"retention.ms": "1000"})


def test_a_topic_that_would_lose_records_is_an_error(config, kafka):
    kafka.topics["push.deferred"] = Topic(2, 1, {"cleanup.policy": "compact"})
    assert martlet("topics", "check", "--config", config).returncode == UNAVAILABLE
    ended = create(config)
    assert ended.returncode == DATA, ended
    assert "✗ push.deferred: exists" in ended.stdout
    assert "cleanup.policy is compact, should be delete" in ended.stdout


def test_what_cannot_be_made_is_told_with_the_brokers_reason(config, kafka):
    kafka.forbidden.add("push.results")
    ended = create(config, "--setting", "push.deferred:retention.sm=1")
    assert ended.returncode == UNAVAILABLE, ended
    assert "✗ push.results: failed: Topic authorization failed. (TOPIC_AUTHORIZATION_FAILED)" in ended.stdout
    assert "✗ push.deferred: failed: Unknown topic config name: retention.sm (INVALID_CONFIG)" in ended.stdout
    assert "+ push.requests: created" in ended.stdout
    ended = martlet("topics", "create", "--config", config, "--replication-factor", 3)
    assert ended.returncode == UNAVAILABLE, ended
    assert "larger than the number of brokers: 1" in ended.stdout


def test_check_judges_the_topics_too(config, kafka):
    assert create(config).returncode == 0
    kafka.topics["push.invalid-tokens"].settings["cleanup.policy"] = "delete"
    kafka.topics["push.requests"].settings["cleanup.policy"] = "compact"
    ended = martlet("check", "--config", config, "--connect", "--json")
    assert ended.returncode == UNAVAILABLE, ended
    found = {each["name"]: each for each in json.loads(ended.stdout)["connections"] if each["kind"] == "topic"}
    assert {name: each["state"] for name, each in found.items()} == {
        "push.requests": "bad", "push.results": "good", "push.invalid-tokens": "warning",
        "push.dead-letters": "good", "push.deferred": "good",
    }  # fmt: skip
    assert "should be compact" in found["push.invalid-tokens"]["message"]


def test_no_key_of_an_app_is_needed(world, kafka):
    config = configured(world, kafka={"brokers": kafka.bootstrap})
    world.key().file.unlink()
    assert create(config).returncode == 0


def test_brokers_that_are_not_there_are_unavailable(world):
    config = configured(world, kafka={"brokers": "127.0.0.1:1"})
    ended = martlet("topics", "create", "--config", config, "--timeout", "2s")
    assert ended.returncode == UNAVAILABLE, ended
    assert "127.0.0.1:1" in ended.stderr


def test_what_makes_no_sense_is_explained(config):
    for words, hint in {
        ("topics", "craete"): "did you mean 'create'?",
        ("topics",): "say either 'create' or 'check'",
        ("topic", "create"): "did you mean 'topics'?",
        ("topics", "create", "--topic", "push.result:3"): "did you mean 'push.results'?",
    }.items():
        ended = martlet(*words, "--config", config)
        assert ended.returncode == USAGE, ended
        assert hint in ended.stderr
