"""The chart's documentation, made from the comments in its values.yaml.

    python Tests/Chart/chart_docs.py            tells what is out of date; exits 1 if anything is
    python Tests/Chart/chart_docs.py --write    brings README.md and the descriptions in values.schema.json up to date

A comment right above a key describes it. `# @section Title` begins a section, with more comment lines as its text.
"""

import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "martlet"


@dataclass
class Entry:
    """One commented key of values.yaml."""

    path: tuple[str, ...]
    text: str
    default: object

    @property
    def name(self) -> str:
        return ".".join(self.path)


@dataclass
class Section:
    title: str
    text: str = ""
    entries: list[Entry] = field(default_factory=list)


def read_values(text: str) -> list[Section]:
    """The sections of values.yaml, in order."""
    values = yaml.safe_load(text)
    sections: list[Section] = []
    comment: list[str] = []
    stack: list[tuple[int, str]] = []
    for line in text.splitlines():
        if match := re.match(r" *# ?(.*)$", line):
            comment.append(match[1].strip())
            continue
        if not line.strip():
            if comment and comment[0].startswith("@section "):
                title = comment[0].removeprefix("@section ")
                sections.append(Section(title, " ".join(comment[1:]).strip()))
            comment = []
            continue
        if match := re.match(r"( *)([A-Za-z][\w.-]*):(?: |$)", line):
            indent = len(match[1])
            while stack and stack[-1][0] >= indent:
                stack.pop()
            stack.append((indent, match[2]))
            if comment:
                path = tuple(key for _, key in stack)
                default = values
                for key in path:
                    default = default[key]
                sections[-1].entries.append(Entry(path, " ".join(comment), default))
        comment = []
    return sections


def readme(chart: dict, sections: list[Section], head: str) -> str:
    """README.md: the head, then one table for each section."""
    entries = [entry for section in sections for entry in section.entries]
    lines = [
        f"# {chart['name']}",
        "",
        f"{chart['description']}. Chart {chart['version']}, Martlet {chart['appVersion']}, "
        f"Kubernetes {chart['kubeVersion'].removesuffix('-0')}.",
        "",
        head.strip(),
        "",
        "## Values",
        "",
    ]
    for section in sections:
        lines += [f"### {section.title}", ""]
        if section.text:
            lines += [section.text, ""]
        lines += ["| value | default | meaning |", "|---|---|---|"]
        for entry in section.entries:
            has_parts = any(other.path[: len(entry.path)] == entry.path and other is not entry for other in entries)
            default = "below" if has_parts else f"`{json.dumps(entry.default, ensure_ascii=False)}`"
            lines.append(f"| `{entry.name}` | {cell(default)} | {cell(entry.text)} |")
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def described(schema: dict, sections: list[Section]) -> dict:
    """The schema with the comments as descriptions."""
    schema = json.loads(json.dumps(schema))
    for section in sections:
        for entry in section.entries:
            part = schema
            for key in entry.path:
                part = part["properties"][key]
            part["description"] = entry.text
    return schema


def pages() -> dict[Path, str]:
    """What each made file should hold."""
    sections = read_values((CHART / "values.yaml").read_text(encoding="utf-8"))
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    head = (CHART / "README.head.md").read_text(encoding="utf-8")
    return {
        CHART / "README.md": readme(chart, sections, head),
        CHART / "values.schema.json": json.dumps(described(schema, sections), indent=2, ensure_ascii=False) + "\n",
    }


def main(arguments: list[str]) -> int:
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if arguments == ["--write"]:
            path.write_text(pages()[path], encoding="utf-8")
            print(f"{path.relative_to(ROOT)} written")
        else:
            print(f"{path.relative_to(ROOT)} is out of date: run scripts/chart-check --write")
    return 1 if stale and not arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
