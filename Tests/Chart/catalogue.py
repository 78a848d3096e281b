"""The metrics that the service has, read from the page that its own tests keep current, and what a query asks for."""

import re
from dataclasses import dataclass

from chart_docs import ROOT


@dataclass(frozen=True)
class Family:
    kind: str
    labels: frozenset[str]


def _families() -> dict[str, Family]:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", page, re.MULTILINE)
    return {name: Family(kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


FAMILIES = _families()


def _words() -> set[str]:
    """All that the sources of the labels' values spell out."""
    found = set()
    for path in ("APNs/Reason.swift", "Delivery", "Service/Telemetry/AppSeries.swift"):
        place = ROOT / "Sources" / path
        for file in place.glob("*.swift") if place.is_dir() else [place]:
            text = file.read_text(encoding="utf-8")
            found |= set(re.findall(r'"(\w+)"', text))
            for cases in re.findall(r"\bcase ([\w, ]+)$", text, re.MULTILINE):
                found |= set(re.findall(r"\w+", cases))
    return found


#: What a label may say, and much that it does not: enough to notice a misspelt value.
WORDS = _words()


def count(query: str) -> int:
    """How many metrics a query asks for."""
    return len(re.findall(r"\b(?:martlet|process)_\w+", query))


def faults(query: str) -> list[str]:
    """What a PromQL query asks for that the service does not have."""
    found = []
    for name, selector in re.findall(r"\b((?:martlet|process)_\w+)(?:\{([^}]*)\})?", query):
        family = FAMILIES.get(name) or FAMILIES.get(re.sub(r"_(bucket|sum|count)$", "", name))
        if family is None:
            found.append(f"there is no metric {name}")
            continue
        if (family.kind == "histogram") != (name not in FAMILIES):
            found.append(f"{name} is a {family.kind}")
        labels = set(re.findall(r"(\w+)[=!]", selector or "")) - {"namespace", "pod", "job", "le"}
        found += [f"{name} has no label {label}" for label in labels - family.labels]
        for label, value in re.findall(r'\b(status|reason|cause)[=!]~?"([^"]*)"', selector or ""):
            found += [f"no {label} is {word}" for word in value.split("|") if word not in WORDS]
    return found
