"""`martlet produce`: what it publishes, read by other clients; what it refuses, and how it ends."""

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

from kafka_io import Reader
from processes import find_binary
from test_command_line import USAGE, configured, martlet
from world import request

DATA, UNAVAILABLE = 65, 69
TOKEN = "00112233445566778899aabbccddeeff"


def read(world, count):
    with Reader(world.kafka.bootstrap, "push.requests") as reader:
        return sorted(reader.count(count), key=lambda record: record.value)


def test_one_request_from_options(world):
    config = configured(world)
    ended = martlet(
        "produce", "--config", config, "--token", TOKEN, "--title", "Shipped", "--badge", 0, "--id", "order-42",
        "--priority", 5, "--collapse-id", "order",
    )  # fmt: skip
    assert ended.returncode == 0, ended
    assert ended.stdout.startswith("1 request published to push.requests[")
    (record,) = read(world, 1)
    assert record.key == TOKEN.encode()
    assert record.json == {
        "id": "order-42", "app": "shop-ios", "token": TOKEN, "priority": 5, "collapse_id": "order",
        "payload": {"aps": {"alert": {"title": "Shipped"}, "badge": 0}},
    }  # fmt: skip


def test_lines_are_published_as_they_stand_and_keyed_by_token(world):
    config = configured(world)
    lines = [json.dumps(request(TOKEN[:-1] + str(number), id=f"n{number}"), indent=None) for number in range(5)]
    batch = json.dumps({**request("ab12", id="batch"), "tokens": ["ab12", "cd34"]}).replace('"token": "ab12", ', "")
    ended = martlet("produce", "--config", config, text_in="\r\n".join([*lines, "", batch]))
    assert ended.returncode == 0, ended
    assert ended.stdout.startswith("6 requests published to push.requests")
    records = {record.json["id"]: record for record in read(world, 6)}
    for number, line in enumerate(lines):
        assert records[f"n{number}"].value == line.encode()
        assert records[f"n{number}"].key == (TOKEN[:-1] + str(number)).encode()
    assert records["batch"].key is None


def test_what_the_service_would_refuse_is_named_and_not_published(world):
    config = configured(world)
    lines = [
        json.dumps(request(TOKEN)),
        json.dumps(request(TOKEN, priority=7)),
        json.dumps(request(TOKEN, app="shop-iso")),
        "{",
        json.dumps(request("xyz")),
        json.dumps(request(TOKEN, priority=8)),
    ]
    ended = martlet("produce", "--config", config, "--json", text_in="\n".join(lines))
    assert ended.returncode == DATA, ended
    told = ended.stderr.splitlines()
    assert [line.split(": ")[0] for line in told] == [f"standard input:{number}" for number in range(2, 7)]
    assert told[0] == "standard input:2: priority: must be 10, 5 or 1; found 7"
    assert told[1].endswith('found "shop-iso", did you mean shop-ios?')
    outcome = json.loads(ended.stdout)
    assert (outcome["published"], outcome["refused"], outcome["failed"]) == (1, 5, 0)
    assert outcome["reasons"]["priority: must be 10, 5 or 1"] == 2
    assert len(read(world, 1)) == 1


def test_a_dry_run_publishes_nothing(world):
    config = configured(world)
    ended = martlet("produce", "--config", config, "--token", TOKEN, "--alert", "x", "--dry-run")
    assert ended.returncode == 0, ended
    assert json.loads(ended.stdout.splitlines()[0])["token"] == TOKEN
    ended = martlet("produce", "--config", config, "--dry-run", text_in=json.dumps(request(TOKEN)))
    assert ended.stdout == "1 request good, 0 refused; nothing was published\n"
    ended = martlet("produce", "--config", config, "--token", "xyz", "--alert", "x", "--dry-run")
    assert ended.returncode == DATA, ended
    assert "--token: " in ended.stderr
    read(world, 0)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--app", "shop-iso", "--token", "ab12", "--alert", "x"], "did you mean 'shop-ios'?"),
        (["--tokn", "ab12"], "did you mean '--token'?"),
        (["--to", "push.request", "--token", "ab12", "--alert", "x"], "did you mean 'push.requests'?"),
        (["--file", "x", "--token", "ab12"], "'--token' cannot be added"),
        (["--app", "shop-ios"], "'--app' is for a request from options"),
    ],
)
def test_what_makes_no_sense_is_explained(world, words, hint):
    ended = martlet("produce", "--config", configured(world), *words)
    assert ended.returncode == USAGE, ended
    assert hint in ended.stderr


def test_brokers_that_are_not_there_are_unavailable(world):
    config = configured(world, kafka={"brokers": "127.0.0.1:1"})
    ended = martlet("produce", "--config", config, "--timeout", "1s", text_in=json.dumps(request(TOKEN)))
    assert ended.returncode == UNAVAILABLE, ended
    assert "standard input:1: not published" in ended.stderr
    assert "127.0.0.1:1" in ended.stderr


def test_long_input_is_published_whole(world, tmp_path):
    config = configured(world)
    count = 60_000
    path = tmp_path / "requests.jsonl"
    with path.open("w") as output:
        for number in range(count):
            output.write(json.dumps({"app": "shop-ios", "token": f"{number:064x}", "payload": {"aps": {}}}) + "\n")
    ended = martlet("produce", "--config", config, "--file", path, "--json")
    assert json.loads(ended.stdout)["published"] == count, ended
    with Reader(world.kafka.bootstrap, "push.requests") as reader:
        records = reader.until("all records", lambda records: len(records) >= count, 90)
    assert {record.key for record in records} == {f"{number:064x}".encode() for number in range(count)}


def test_input_of_any_length_takes_little_memory(world):
    config = configured(world)
    lines = (json.dumps(request(TOKEN)) + "\n").encode() * 1000
    process = subprocess.Popen(
        [find_binary(), "produce", "--config", config, "--dry-run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    for _ in range(200):
        process.stdin.write(lines)
    (peak,) = re.findall(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
    process.stdin.close()
    out = process.stdout.read().decode()
    assert (out, process.wait()) == ("200000 requests good, 0 refused; nothing was published\n", 0)
    # More than 25 MB of requests have passed through a program that takes about 20.
    assert int(peak) < 40_000


def test_a_terminal_shows_a_bar(world, tmp_path):
    config = configured(world)
    path = tmp_path / "requests.jsonl"
    path.write_text((json.dumps(request(TOKEN)) + "\n") * 2000)
    main, side = pty.openpty()
    with subprocess.Popen(
        [find_binary(), "produce", "--config", config, "--file", path],
        stderr=side, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        os.close(side)
        out = process.communicate(timeout=100)[0]
    shown = os.read(main, 65536).decode()
    os.close(main)
    assert out.decode().startswith("2000 requests published")
    assert "[#" in shown
    assert "% " in shown
    assert "refused" in shown


def test_a_signal_ends_reading_and_keeps_what_was_read(world):
    config = configured(world)
    with subprocess.Popen(
        [find_binary(), "produce", "--config", config],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        process.stdin.write(json.dumps(request(TOKEN)) + "\n")
        process.stdin.flush()
        with Reader(world.kafka.bootstrap, "push.requests") as reader:
            # It does not wait for more lines before it publishes the first.
            reader.count(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == UNAVAILABLE
        assert "1 request published" in process.stdout.read()
        process.stdin.close()


def test_produced_requests_are_delivered(world):
    world.martlet().wait_ready()
    config = world.programs[-1].command[-1]
    ended = martlet("produce", "--config", config, "--token", TOKEN, "--alert", "Hello", "--id", "greeting")
    assert ended.returncode == 0, ended
    (result,) = world.results.by_id(["greeting"])["greeting"]
    assert result.json["status"] == "delivered"
