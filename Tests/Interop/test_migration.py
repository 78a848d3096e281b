"""docs/migration.md: each row of its tables is run, and what it says comes out is what comes out."""

import json
import re
import shlex
import subprocess
from dataclasses import dataclass

import pytest

from processes import ROOT, find_binary, free_port
from waiting import PATIENCE, until
from world import World, request

PAGE = ROOT / "docs" / "migration.md"
TOKEN = "00112233445566778899aabbccddeeff"
DATA = 65
REFERENCE = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("settings.md", "metrics.md"))


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
    """A service at work, with a delivered push and an unregistered token; its configuration is `martlet.json5`."""
    made = World(tmp_path_factory.mktemp("migration"))
    service = made.martlet()
    (made.directory / "martlet.json5").write_text(service.command[-1].read_text() if False else open(service.command[-1]).read())
    apps = made.directory / "apps"
    apps.mkdir()
    configuration = made.configuration(free_port())
    for name, app in configuration["apps"].items():
        (apps / f"{name}.json5").write_text(json.dumps(app))
    (made.directory / "directory.json5").write_text(json.dumps({**configuration, "apps": str(apps)}))
    (made.directory / "requests.jsonl").write_text(json.dumps(request(TOKEN)) + "\n")
    service.wait_ready()
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
    ended = martlet(
        world, f"martlet produce --config martlet.json5 --app shop-ios --token {TOKEN} {options} --dry-run"
    )
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
    elif span.startswith("martlet_") or re.fullmatch(r"(kafka|apps|delivery|http|log)(\.[\w<>.]+)?", span):
        assert f"`{span}`" in REFERENCE, span
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
    dead = "dd" * 16
    world.server.script_token(dead, status=410, reason="Unregistered") if hasattr(world.server, "script_token") else None
    assert until is not None
