"""The Dockerfile: exact tags, the rights of its user, words of its own; and that it is read as a builder reads it.
scripts/image-check follows its steps and runs what comes of them."""

import json
import re
import subprocess
from pathlib import Path

import pytest

import dockerfile

ROOT = Path(__file__).resolve().parents[2]
STAGES = dockerfile.parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))
BUILD, SYMBOLS, FINAL = STAGES
VERSION = re.search(r'text = "(.*)"', (ROOT / "Sources/Service/Version.swift").read_text(encoding="utf-8"))[1]


def test_the_bases_are_released_tags_that_do_not_move():
    assert re.fullmatch(r"swift:\d+\.\d+\.\d+-bookworm", BUILD.base)
    assert re.fullmatch(r"debian:bookworm-\d{8}-slim", FINAL.base)
    assert SYMBOLS.base == "scratch"
    assert FINAL.labels()["org.opencontainers.image.base.name"] == f"docker.io/library/{FINAL.base}"


def test_it_runs_as_a_numeric_user_without_rights():
    assert FINAL.last("USER").text == "65532:65532"
    # Nothing changes files after it.
    after = FINAL.instructions[FINAL.instructions.index(FINAL.last("USER")) :]
    assert not {"RUN", "COPY", "ADD"} & {each.keyword for each in after}


def test_nothing_that_runs_needs_a_shell():
    assert FINAL.last("ENTRYPOINT").exec_form == ["/usr/local/bin/martlet"]
    assert FINAL.last("CMD").exec_form == ["run", "--config", "/etc/martlet/martlet.json5"]
    command = FINAL.last("HEALTHCHECK").text.partition("CMD ")[2]
    assert json.loads(command)[:2] == ["/usr/local/bin/martlet", "health"]


def test_the_signal_is_the_one_that_drains():
    assert FINAL.last("STOPSIGNAL").text == "SIGTERM"


def test_the_labels_are_those_of_the_image_specification():
    labels = FINAL.labels()
    assert {"title", "description", "licenses", "version", "revision", "created", "base.name"} == {
        name.removeprefix("org.opencontainers.image.") for name in labels
    }
    assert labels["org.opencontainers.image.version"] == VERSION


def test_the_builder_sees_what_it_copies_and_little_else():
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    seen = dockerfile.context(ROOT, listed)
    assert {"Package.swift", "Sources/martlet/main.swift", "scripts/build-program"} <= set(seen)
    tops = {"Package.swift", "Sources", "Tests", "Benchmarks", "Fuzz", "scripts"}
    assert {name.split("/")[0] for name in seen} == tops
    assert not [name for name in seen if name.endswith(".py")]
    copied = [source for each in BUILD.all("COPY") for source in each.words[:-1]]
    for name in seen:
        assert any(name == source or name.startswith(f"{source}/") for source in copied), f"{name} is not used"


def test_every_directory_of_the_package_is_copied():
    """SwiftPM refuses a package of whose targets one has no directory, whatever is built."""
    package = (ROOT / "Package.swift").read_text(encoding="utf-8")
    copied = [source for each in BUILD.all("COPY") for source in each.words[:-1]]
    named = re.findall(r'path: "([^"]+)"', package)
    assert named
    reproduce = (ROOT / "scripts/reproduce").read_text(encoding="utf-8")
    for path in ["Sources", "Tests", *named]:
        assert any(path == source or path.startswith(f"{source}/") for source in copied), path
        assert any(path == source or path.startswith(f"{source}/") for source in reproduce.split()), path


def test_what_is_copied_from_a_stage_is_what_the_build_makes():
    script = (ROOT / "scripts/build-program").read_text(encoding="utf-8")
    for stage in (SYMBOLS, FINAL):
        (copy,) = stage.all("COPY")
        assert copy.flags["from"] == BUILD.name
        assert f'"$out/{Path(copy.words[0]).name}"' in script


def test_the_reader_joins_lines_and_leaves_comments_out():
    text = "ARG A=1\n"
    with pytest.raises(ValueError, match="before the first FROM"):
        dockerfile.parse(text)
    (stage,) = dockerfile.parse(
        'FROM a:1 AS b\n# c\nRUN x \\\n  # inside\n  && y\n\nCOPY --from=q /f ./g/\nARG V=2\nLABEL n="v $V" m=w\n'
    )
    assert (stage.base, stage.name) == ("a:1", "b")
    run, copy, _, _ = stage.instructions
    assert (run.text.split(), run.line) == (["x", "&&", "y"], 3)
    assert (copy.flags, copy.words) == ({"from": "q"}, ["/f", "./g/"])
    assert stage.labels() == {"n": "v 2", "m": "w"}
    with pytest.raises(ValueError, match="here-documents"):
        dockerfile.parse("FROM a:1\nRUN <<EOF\n")
