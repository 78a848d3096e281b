"""The program as a person or a script calls it: exit codes, help, a configuration that is wrong."""

import json
import subprocess

import pytest

from processes import find_binary, free_port

USAGE, DATA, CONFIGURATION = 64, 65, 78
COMMANDS = [
    "run", "demo", "send", "channels", "check", "topics", "health", "produce", "results", "invalid-tokens", "mock-apns",
    "mock-kafka",
]  # fmt: skip


def martlet(*arguments, text_in: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(find_binary()), *map(str, arguments)]
    return subprocess.run(command, input=text_in, capture_output=True, text=True, timeout=60, check=False)


def configured(world, **changes):
    """A configuration file for the world's broker and server; `changes` replace whole sections."""
    world.app()
    path = world.directory / "configuration.json5"
    path.write_text(json.dumps({**world.configuration(free_port()), **changes}))
    return path


def test_version_and_help():
    assert martlet("--version").returncode == 0
    overview = martlet("--help")
    assert overview.returncode == 0
    for command in COMMANDS:
        assert command in overview.stdout
        described = martlet(command, "--help")
        assert described.returncode == 0, command
        assert command in described.stdout


@pytest.mark.parametrize(
    "arguments",
    [["no-such-command"], ["run", "--no-such-option"], ["run"], ["demo", "--rate"], ["mock-kafka", "--topic"]],
)
def test_what_is_not_understood_ends_with_64(arguments):
    ended = martlet(*arguments)
    assert ended.returncode == USAGE, ended
    assert ended.stderr
    assert not ended.stdout


def test_check_accepts_what_run_accepts(world):
    ended = martlet("check", "--config", configured(world))
    assert ended.returncode == 0, ended.stderr
    ended = martlet("check", "--config", configured(world), "--connect")
    assert ended.returncode == 0, ended.stderr


def test_a_wrong_configuration_is_explained(world):
    cases = {
        "an unknown key": ({"delivery": {"maxInflight": 10}}, ["maxInflight", "maxInFlight"]),
        "a wrong value": ({"delivery": {"requestTimeout": "soon"}}, ["requestTimeout"]),
        "no apps": ({"apps": {}}, ["apps"]),
    }
    for case, (changes, words) in cases.items():
        path = configured(world, **changes)
        for command in ("check", "run"):
            ended = martlet(command, "--config", path)
            assert ended.returncode == CONFIGURATION, (case, command, ended)
            for word in words:
                assert word in ended.stdout + ended.stderr, (case, command, ended)
    assert martlet("check", "--config", world.directory / "nowhere.json5").returncode == CONFIGURATION


def test_what_the_client_of_kafka_refuses_is_explained(world):
    cases = {
        "no user": ({"security.protocol": "sasl_ssl", "sasl.mechanism": "SCRAM-SHA-256"}, "sasl.username"),
        "no authorities": ({"security.protocol": "ssl", "ssl.ca.location": "/nowhere/ca.pem"}, "no such file"),
        "no certificate": (
            {"security.protocol": "ssl", "ssl.certificate.location": __file__},
            "ssl.certificate.location",
        ),
        "times that do not fit": ({"session.timeout.ms": 400_000}, "max.poll.interval.ms"),
    }
    brokers = f"127.0.0.1:{free_port()}"
    for case, (properties, words) in cases.items():
        path = configured(world, kafka={"brokers": [brokers], "properties": properties})
        for command in ("check", "run"):
            ended = martlet(command, "--config", path)
            assert ended.returncode == CONFIGURATION, (case, command, ended)
            assert words in ended.stdout + ended.stderr, (case, command, ended)


def test_a_key_that_is_none_is_named_without_its_content(world):
    world.key().file.write_text("-----BEGIN PRIVATE KEY-----\nnotakeyatall\n-----END PRIVATE KEY-----\n")
    ended = martlet("check", "--config", configured(world))
    assert ended.returncode == CONFIGURATION, ended
    said = ended.stdout + ended.stderr
    assert str(world.key().file) in said
    assert "shop-ios" in said
    assert "notakeyatall" not in said


def test_the_demo_balances_its_books():
    ended = martlet("demo", "--json", "--apps", "3", "--rate", "500", "--duration", "5s", "--faults")
    assert ended.returncode == 0, ended
    books = json.loads(ended.stdout)
    assert books["unaccounted"] == 0
    assert books["produced"] >= 2000
    counted = sum(books[status] for status in ("delivered", "rejected", "expired", "failed", "invalid"))
    assert counted == books["produced"]
