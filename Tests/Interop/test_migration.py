"""docs/migration.md: each row of its tables is run, and what it says comes out is what comes out."""

import json
import re
import shlex
import subprocess
from dataclasses import dataclass

import pytest

from apns_standin import Answer
from processes import ROOT, find_binary
from waiting import PATIENCE
from world import World, as_record, request

# They share what takes long to start.
pytestmark = pytest.mark.xdist_group("migration")

PAGE = ROOT / "docs" / "migration.md"
TOKEN = "00112233445566778899aabbccddeeff"
DEAD = "dd" * 16
DATA = 65
METRICS = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Row:
    system: str
    there: str
    here: str
    out: str

    @property
    def spans(self) -> list[str]:
        """The code of the middle column."""
        return re.findall(r"`([^`]+)`", self.here)

    def __str__(self) -> str:
        return f"{self.system}: {self.there}"


def rows() -> list[Row]:
    found = []
    system = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            system = line[3:]
        elif line.startswith("| ") and not line.startswith("| There"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found.append(Row(system, *(cells + [""])[:3]) if len(cells) in (2, 3) else pytest.fail(line))
    return [Row(row.system, row.there, row.here, row.out.strip("| ")) for row in found]


ROWS = rows()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A service at work that has delivered a push and met a dead token. Its configuration is `martlet.json5`."""
    made = World(tmp_path_factory.mktemp("migration"))
    service = made.martlet()
    configuration = made.configuration(service.http_port)
    write = lambda name, what: (made.directory / name).write_text(json.dumps(what) + "\n")  # noqa: E731
    write("martlet.json5", configuration)
    (made.directory / "apps").mkdir()
    for name, app in configuration["apps"].items():
        write(f"apps/{name}.json5", app)
    write("directory.json5", {**configuration, "apps": str(made.directory / "apps")})
    write("requests.jsonl", request(TOKEN))
    made.server.answer(DEAD, Answer(410, "Unregistered", timestamp=1790000000000))
    service.wait_ready()
    made.send([as_record(request(TOKEN, id="good")), as_record(request(DEAD, id="dead"))])
    made.results.by_id(["good", "dead"])
    made.events.count(1)
    yield made
    made.close()


def martlet(world, command):
    words = shlex.split(command)
    assert words[0] == "martlet"
    return subprocess.run(
        [find_binary(), *words[1:]], cwd=world.directory, capture_output=True, text=True, check=False,
        timeout=60 * PATIENCE, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def run_push(world, options, out):
    """The record of a push is as the page says, and the service takes it."""
    ended = martlet(world, f"martlet produce --config martlet.json5 --app shop-ios --token {TOKEN} {options} --dry-run")
    assert ended.returncode == 0, ended
    record = json.loads(ended.stdout.splitlines()[0])
    assert (record["app"], record["token"]) == ("shop-ios", TOKEN)
    wanted = json.loads(out.strip("`"))
    if "aps" in wanted:
        assert record["payload"] == wanted
    else:
        assert {name: record.get(name) for name in wanted} == wanted


def run_record(world, record, out):
    ended = subprocess.run(
        [find_binary(), "produce", "--config", "martlet.json5", "--dry-run"],
        cwd=world.directory, input=record, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == (DATA if out == "refused" else 0), ended


def run_setting(world, path):
    """The program reads the setting: it says what is wrong with a value of no sense, and knows the name."""
    configuration = json.loads((world.directory / "martlet.json5").read_text())
    place = configuration
    *groups, name = path.replace("<name>", "shop-ios").split(".")
    for group in groups:
        place = place.setdefault(group, {})
    place[name] = {"no sense": True}
    (world.directory / "tried.json5").write_text(json.dumps(configuration))
    problems = json.loads(martlet(world, "martlet check --config tried.json5 --json").stdout)["problems"]
    (found, *_) = [each for each in problems if each["path"].startswith(path.replace("<name>", "shop-ios"))]
    assert found["message"] != "unknown key", found


def run_span(world, span, out) -> bool:
    """Whether there was something to run or to look up."""
    if span.startswith("push "):
        run_push(world, span.removeprefix("push "), out)
    elif span == "martlet run --config martlet.json5":
        # It runs already: the answer of a second one would be that its port is taken.
        assert martlet(world, "martlet health --ready --config martlet.json5").returncode == 0
    elif span.startswith("martlet "):
        ended = martlet(world, span)
        assert ended.returncode == 0, ended
    elif span.startswith("{"):
        run_record(world, span, out)
    elif span.startswith("martlet_"):
        assert f"`{span}`" in METRICS, span
    elif re.fullmatch(r"(kafka|apps|delivery)(\.[\w<>]+)*", span):
        run_setting(world, span)
    else:
        return False
    return True


def test_the_tables_are_all_there():
    systems = {row.system for row in ROWS}
    assert systems == {"PyAPNs", "pyapns", "apnserver", "The Django model with sockets", "APNSwift"}
    assert len(ROWS) > 100
    assert len(set(map(str, ROWS))) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_row_does_what_it_says(world, row):
    assert any([run_span(world, span, row.out) for span in row.spans]), "nothing in this row can be run"


def test_a_dead_token_comes_out_as_the_event_that_takes_the_place_of_feedback(world):
    ended = martlet(
        world, "martlet invalid-tokens --config martlet.json5 --app shop-ios --since beginning --until-end --json"
    )
    (event,) = [json.loads(line) for line in ended.stdout.splitlines()]
    assert (event["token"], event["unregistered_at"], event["id"]) == (DEAD, 1790000000000, "dead")
