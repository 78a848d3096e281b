"""`martlet topics`, against a broker that takes such requests, and looked at with another client."""

import json

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from broker import Tansu
from test_command_line import configured, martlet

DATA, UNAVAILABLE = 65, 69
NAMES = ["push.requests", "push.results", "push.invalid-tokens", "push.dead-letters", "push.deferred"]


@pytest.fixture
def tansu(tmp_path):
    with Tansu(tmp_path / "tansu.log") as broker:
        yield broker


@pytest.fixture
def config(world, tansu):
    return configured(world, kafka={"brokers": tansu.bootstrap})


def found(broker):
    """Partitions and settings of each topic."""
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    topics = client.list_topics(timeout=20).topics
    asked = client.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics])
    settings = {resource.name: future.result(20) for resource, future in asked.items()}
    return {
        name: (len(topic.partitions), {key: entry.value for key, entry in settings[name].items()})
        for name, topic in topics.items()
    }


def make(broker, name, partitions, **settings):
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    topic = NewTopic(name, partitions, 1, config={key.replace("_", "."): value for key, value in settings.items()})
    client.create_topics([topic])[name].result(20)


def report(ended):
    return {topic["topic"]: topic for topic in json.loads(ended.stdout)["topics"]}


def test_topics_are_made_once_with_what_their_use_needs(config, tansu):
    planned = martlet("topics", "create", "--config", config, "--dry-run", "--json")
    assert planned.returncode == 0, planned
    assert {topic["state"] for topic in report(planned).values()} == {"planned"}
    assert found(tansu) == {}

    made = martlet("topics", "create", "--config", config, "--topic", "push.requests:3", "--replication-factor", 1)
    assert made.returncode == 0, made
    assert made.stdout.count("created") == 5
    topics = found(tansu)
    assert sorted(topics) == sorted(NAMES)
    assert {name: count for name, (count, _) in topics.items()} == {
        "push.requests": 3, "push.results": 8, "push.invalid-tokens": 4, "push.dead-letters": 4, "push.deferred": 8,
    }  # fmt: skip
    assert topics["push.invalid-tokens"][1] == {"cleanup.policy": "compact"}
    week = str(7 * 86_400_000)
    assert topics["push.requests"][1] == {"cleanup.policy": "delete", "retention.ms": week}
    assert topics["push.dead-letters"][1]["retention.ms"] == str(30 * 86_400_000)

    again = martlet("topics", "create", "--config", config, "--json")
    assert again.returncode == 0, again
    assert {topic["state"] for topic in report(again).values()} == {"exists"}
    assert not any(topic["remarks"] for topic in report(again).values())
    assert found(tansu) == topics
    assert martlet("topics", "check", "--config", config).returncode == 0


def test_what_exists_is_kept_and_its_differences_are_told(config, tansu):
    make(tansu, "push.requests", 2, cleanup_policy="delete", retention_ms="1000")
    ended = martlet("topics", "create", "--config", config, "--partitions", 6, "--json")
    assert ended.returncode == 0, ended
    topics = report(ended)
    assert topics["push.requests"]["state"] == "exists"
    assert [remark["subject"] for remark in topics["push.requests"]["remarks"]] == ["partitions"]
    assert topics["push.results"]["state"] == "created"
    assert found(tansu)["push.requests"] == (2, {"cleanup.policy": "delete", "retention.ms": "1000"})


def test_a_topic_that_would_lose_records_is_an_error(config, tansu):
    make(tansu, "push.deferred", 2, cleanup_policy="compact")
    assert martlet("topics", "check", "--config", config).returncode == UNAVAILABLE
    ended = martlet("topics", "create", "--config", config)
    assert ended.returncode == DATA, ended
    assert "✗ push.deferred: exists" in ended.stdout
    assert "cleanup.policy is compact, should be delete" in ended.stdout


def test_brokers_that_are_not_there_are_unavailable(world):
    config = configured(world, kafka={"brokers": "127.0.0.1:1"})
    ended = martlet("topics", "create", "--config", config, "--timeout", "2s")
    assert ended.returncode == UNAVAILABLE, ended
    assert "127.0.0.1:1" in ended.stderr
