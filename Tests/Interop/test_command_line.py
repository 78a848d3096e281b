"""The program as a person or a script calls it: exit codes, help, a configuration that is wrong."""

import json
import subprocess

import pytest

from apns_standin import Answer
from contract import check_result
from processes import find_binary, free_port
from world import device_token

USAGE, DATA, CONFIGURATION = 64, 65, 78
COMMANDS = ["run", "demo", "send", "produce", "check", "mock-apns", "mock-kafka"]


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
    [["no-such-command"], ["run", "--no-such-option"], ["run"], ["send", "--app"], ["mock-kafka", "--topic"]],
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


def test_a_key_that_is_none_is_named_without_its_content(world):
    world.key().file.write_text("-----BEGIN PRIVATE KEY-----\nnotakeyatall\n-----END PRIVATE KEY-----\n")
    ended = martlet("check", "--config", configured(world))
    assert ended.returncode == CONFIGURATION, ended
    said = ended.stdout + ended.stderr
    assert str(world.key().file) in said
    assert "shop-ios" in said
    assert "notakeyatall" not in said


def test_send_prints_the_answer(world):
    path = configured(world)
    world.server.answer(device_token(2), Answer(410, "Unregistered", timestamp=1_783_245_053_444))
    sent = martlet("send", "--config", path, "--app", "shop-ios", "--token", device_token(1), "--alert", "Hello")
    assert sent.returncode == 0, sent.stderr
    assert "200" in sent.stdout
    (seen,) = world.server.seen
    assert json.loads(seen.body)["aps"]["alert"] in ("Hello", {"body": "Hello"})
    refused = martlet("send", "--config", path, "--app", "shop-ios", "--token", device_token(2), "--alert", "Hello")
    assert refused.returncode != 0
    assert "Unregistered" in refused.stdout + refused.stderr


def test_produce_publishes_lines_of_json(world):
    path = configured(world)
    world.martlet().wait_ready()
    lines = "".join(
        json.dumps({"id": f"line-{number}", "app": "shop-ios", "token": device_token(number), "payload": {"aps": {}}})
        + "\n"
        for number in range(20)
    )
    ended = martlet("produce", "--config", path, text_in=lines)
    assert ended.returncode == 0, ended.stderr
    found = world.results.by_id([f"line-{number}" for number in range(20)])
    assert {check_result(record)["status"] for records in found.values() for record in records} == {"delivered"}
    assert martlet("produce", "--config", path, text_in="not json\n").returncode == DATA
