"""Reads a Dockerfile: its stages, and what each instruction asks for."""

import json
import re
import shlex
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Instruction:
    keyword: str
    #: `--from=build` and the like, before the operands.
    flags: dict[str, str]
    text: str
    line: int

    @property
    def exec_form(self) -> list[str] | None:
        """The words of a JSON array; None: there is none, and a shell would read the text."""
        return json.loads(self.text) if self.text.startswith("[") else None

    @property
    def words(self) -> list[str]:
        return self.exec_form or shlex.split(self.text)

    @property
    def pairs(self) -> dict[str, str]:
        """`name=value` words, as LABEL, ENV and ARG have them."""
        return {name: value for name, _, value in (word.partition("=") for word in shlex.split(self.text))}


@dataclass
class Stage:
    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)

    def all(self, keyword: str) -> list[Instruction]:
        return [each for each in self.instructions if each.keyword == keyword]

    def last(self, keyword: str) -> Instruction:
        return self.all(keyword)[-1]

    def variables(self) -> dict[str, str]:
        """Defaults of ARG and values of ENV."""
        found: dict[str, str] = {}
        for each in self.instructions:
            if each.keyword in ("ARG", "ENV"):
                found |= {name: expanded(value, found) for name, value in each.pairs.items()}
        return found

    def environment(self) -> dict[str, str]:
        """What a process of the image finds in its environment."""
        values = self.variables()
        return {"PATH": DEFAULT_PATH} | {name: values[name] for each in self.all("ENV") for name in each.pairs}

    def labels(self) -> dict[str, str]:
        values = self.variables()
        return {name: expanded(value, values) for each in self.all("LABEL") for name, value in each.pairs.items()}


def expanded(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda match: values[match[1] or match[2]], text)


def parse(text: str) -> list[Stage]:
    stages: list[Stage] = []
    whole = ""
    first = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not (line.strip() or whole):
            continue
        if not whole:
            first = number
        whole += line.strip().removesuffix("\\")
        if line.rstrip().endswith("\\"):
            continue
        keyword, _, rest = whole.strip().partition(" ")
        whole = ""
        flags = {}
        while match := re.match(r"--([a-z-]+)=(\S+)\s+", rest):
            flags[match[1]] = match[2]
            rest = rest[match.end() :]
        if "<<" in rest:
            raise ValueError(f"line {first}: here-documents are not understood")
        if keyword == "FROM":
            base, *name = rest.split()
            stages.append(Stage(base, name[1] if name else ""))
        elif stages:
            stages[-1].instructions.append(Instruction(keyword, flags, rest.strip(), first))
        else:
            raise ValueError(f"line {first}: {keyword} before the first FROM")
    return stages


def context(root: Path, tracked: list[str]) -> list[str]:
    """Which of the files a builder gets to see, by .dockerignore."""
    patterns = [
        line.strip().strip("/")
        for line in (root / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.startswith("#")
    ]

    def is_seen(path: str) -> bool:
        parts = path.split("/")
        prefixes = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        seen = True
        for pattern in patterns:
            bare = pattern.removeprefix("!").strip("/")
            if any(fnmatchcase(prefix, bare) and prefix.count("/") == bare.count("/") for prefix in prefixes):
                seen = pattern.startswith("!")
        return seen

    return [path for path in tracked if is_seen(path)]
