"""`martlet results` and `martlet invalid-tokens`, over records that another client has written."""

import csv
import io
import json
import signal
import subprocess
import time

import pytest

from apns_standin import Answer
from kafka_io import Outgoing, committed, produce
from processes import Martlet, find_binary, free_port
from test_command_line import USAGE, configured, martlet
from waiting import PATIENCE
from world import as_record, request

UNAVAILABLE = 69


def result(number, **fields):
    return {
        "id": f"r{number}", "app": "shop-ios", "token": f"ab{number:04x}", "status": "delivered", "http_status": 200,
        "reason": None, "attempts": 1, "requested_at": 1790000000000 + number, "completed_at": 1790000000500 + number,
        "source": {"topic": "push.requests", "partition": 0, "offset": number, "index": 0}, **fields,
    }  # fmt: skip


def publish(world, topic, records):
    produce(world.kafka.bootstrap, topic, [Outgoing(json.dumps(each).encode(), key=b"k") for each in records])


@pytest.fixture
def config(world):
    return configured(world)


@pytest.fixture
def results(world):
    """Ten results: every third is rejected, the last is of another app."""
    made = [
        result(
            number, **({"status": "rejected", "http_status": 410, "reason": "Unregistered"} if number % 3 == 0 else {})
        )
        for number in range(9)
    ] + [result(9, app="other")]
    publish(world, "push.results", made)
    return made


def lines(config, *words, command="results"):
    ended = martlet(command, "--config", config, "--since", "beginning", "--until-end", "--json", *words)
    assert ended.returncode == 0, ended
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_all_is_read_from_the_beginning_to_the_end(config, results):
    found = lines(config)
    assert sorted(found, key=lambda each: each["id"]) == results


@pytest.mark.usefixtures("results")
def test_filters(config):
    assert {each["id"] for each in lines(config, "--status", "rejected")} == {"r0", "r3", "r6"}
    assert {each["id"] for each in lines(config, "--reason", "Unregistered", "--app", "shop-ios")} == {"r0", "r3", "r6"}
    assert [each["id"] for each in lines(config, "--app", "other")] == ["r9"]
    assert lines(config, "--app", "other", "--status", "rejected") == []
    assert len(lines(config, "--status", "rejected", "--status", "delivered")) == 10


@pytest.mark.usefixtures("results")
def test_since_leaves_out_what_is_older(world, config):
    ended = martlet("results", "--config", config, "--since", "1h", "--until-end", "--json")
    assert len(ended.stdout.splitlines()) == 10
    time.sleep(1.5)
    publish(world, "push.results", [result(20)])
    ended = martlet("results", "--config", config, "--since", "1s", "--until-end", "--json")
    assert [json.loads(line)["id"] for line in ended.stdout.splitlines()] == ["r20"]
    ended = martlet("results", "--config", config, "--until-end")
    assert (ended.returncode, ended.stdout) == (0, "")


@pytest.mark.usefixtures("results")
def test_a_table_that_other_programs_read(config):
    ended = martlet("results", "--config", config, "--since", "beginning", "--until-end", "--export", "csv")
    assert ended.returncode == 0, ended
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(ended.stdout))}
    assert len(rows) == 10
    assert rows["r3"]["reason"] == "Unregistered"
    assert rows["r3"]["source_offset"] == "3"
    assert rows["r4"]["reason"] == ""


@pytest.mark.usefixtures("results")
def test_a_limit_ends_it_and_a_timeout_before_is_a_failure(config):
    ended = martlet("results", "--config", config, "--since", "beginning", "--limit", 3)
    assert (ended.returncode, len(ended.stdout.splitlines())) == (0, 3)
    ended = martlet("results", "--config", config, "--since", "beginning", "--limit", 30, "--timeout", "1s")
    assert (ended.returncode, len(ended.stdout.splitlines())) == (UNAVAILABLE, 10)
    assert "10 of 30 records" in ended.stderr


@pytest.mark.usefixtures("results")
def test_a_closed_pipe_is_an_end(config):
    program = f'"{find_binary()}" results --config "{config}" --since beginning --json'
    ended = subprocess.run(
        ["bash", "-c", f'{program} --limit 10 | head -n 1; exit "${{PIPESTATUS[0]}}"'],
        capture_output=True, text=True, timeout=60 * PATIENCE, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended
    assert len(ended.stdout.splitlines()) == 1


@pytest.mark.usefixtures("results")
def test_it_follows_from_now_and_a_signal_ends_it(world, config):
    with subprocess.Popen(
        [find_binary(), "results", "--config", config, "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr.readline() == "following push.results, 8 partitions; Ctrl-C ends\n"
        publish(world, "push.results", [result(30)])
        # Nothing is held back in a buffer.
        assert json.loads(process.stdout.readline())["id"] == "r30"
        process.send_signal(signal.SIGINT)
        assert process.wait(20 * PATIENCE) == 0
        assert process.stdout.read() == ""
    assert set(committed(world.kafka.bootstrap, "martlet", "push.results", 8).values()) == {-1001}


def test_invalid_tokens(world, config):
    event = {
        "token": "ab12", "app": "shop-ios", "topic": "com.example.shop", "environment": "production",
        "reason": "Unregistered", "suspect": False, "unregistered_at": 1790000000000, "detected_at": 1790000000500,
        "id": None, "source": {"topic": "push.requests", "partition": 0, "offset": 1, "index": 0},
    }  # fmt: skip
    publish(world, "push.invalid-tokens", [event])
    produce(
        world.kafka.bootstrap, "push.invalid-tokens", [Outgoing(None, key=b"tombstone"), Outgoing(b"junk", key=b"j")]
    )
    assert lines(config, command="invalid-tokens") == [event]
    ended = martlet("invalid-tokens", "--config", config, "--since", "beginning", "--limit", 1)
    assert "Unregistered  shop-ios  ab12  since 2026-09-21T" in ended.stdout
    ended = martlet("invalid-tokens", "--config", config, "--since", "beginning", "--until-end", "--export", "csv")
    assert "ab12,shop-ios,com.example.shop,production,Unregistered,false,1790000000000" in ended.stdout
    assert "1 records of push.invalid-tokens could not be read" in ended.stderr


@pytest.mark.parametrize(
    "output",
    [
        {"format": "protobuf"},
        {"cloudEvents": "structured"},
        {"cloudEvents": "binary"},
        {"format": "protobuf", "cloudEvents": "structured"},
    ],
    ids=str,
)
def test_every_form_that_the_service_writes_is_shown_alike(world, output):
    dead = "dd" * 32
    world.app()
    world.server.answer(dead, Answer(410, "Unregistered", timestamp=1790000000000))
    port = free_port()
    path = world.directory / "martlet.json5"
    path.write_text(json.dumps({**world.configuration(port), "output": output}))
    with Martlet(world.binary, path, port, world.directory / "martlet.log") as service:
        service.wait_ready()
        world.send([as_record(request("ab" * 32, id="good")), as_record(request(dead, id="dead"))])
        ended = martlet("results", "--config", path, "--since", "beginning", "--limit", 2, "--timeout", "30s", "--json")
        assert ended.returncode == 0, ended
        found = {each["id"]: each for each in map(json.loads, ended.stdout.splitlines())}
        assert (found["good"]["status"], found["good"]["http_status"], found["good"]["attempts"]) == (
            "delivered",
            200,
            1,
        )
        assert found["dead"]["reason"] == "Unregistered"
        assert found["dead"]["source"]["topic"] == "push.requests"
        ended = martlet(
            "invalid-tokens", "--config", path, "--since", "beginning", "--limit", 1, "--timeout", "30s", "--json"
        )
        event = json.loads(ended.stdout)
        assert (event["token"], event["unregistered_at"], event["suspect"]) == (dead, 1790000000000, False)


def test_what_cannot_be_followed_is_explained(world, config):
    ended = martlet("results", "--config", config, "--status", "deliverd")
    assert ended.returncode == USAGE
    assert "did you mean 'delivered'?" in ended.stderr
    ended = martlet("invalid-tokens", "--config", config, "--status", "delivered")
    assert ended.returncode == USAGE
    assert "--status" in ended.stderr
    config = configured(world, kafka={"brokers": "127.0.0.1:1"}, delivery={"connectTimeout": "1s"})
    ended = martlet("results", "--config", config)
    assert ended.returncode == UNAVAILABLE
    assert "127.0.0.1:1" in ended.stderr
