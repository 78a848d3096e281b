"""Secrets that tests plant, and the search for them in what the service wrote."""

import re
from collections.abc import Iterable
from pathlib import Path

#: In every payload that `world.request` makes.
PAYLOAD = "planted-payload-5b1d0c7e"
#: In every password that a test invents.
PASSWORD = "planted-password-93af"

#: A provider token (RFC 7519: three parts, the first of which begins with `{"`), a device token in full, a key.
ALWAYS = {
    "a provider token": re.compile(r"eyJ[\w-]{8,}\.[\w-]+"),
    "a device token": re.compile(r"(?<![\w-])[0-9a-fA-F]{60,}(?![\w-])"),
    "a key": re.compile(r"PRIVATE KEY|BEGIN CERTIFICATE"),
    "a bearer": re.compile(r"(?i)\bbearer [\w-]{8,}"),
}


def key_lines(pem: Path) -> list[str]:
    """The lines of a PEM file that are secret: neither its frame nor blank ones, which some forms of a key have."""
    return [line for line in map(str.strip, pem.read_text().splitlines()) if line and not line.startswith("-----")]


def found(text: str, secrets: Iterable[str] = ()) -> list[str]:
    """What of the secrets stands in the text, each with the line that it stands in."""
    told = []
    for line in text.splitlines():
        told += [f"{name}: {line[:300]}" for name, pattern in ALWAYS.items() if pattern.search(line)]
        told += [f"{secret!r}: {line[:300]}" for secret in (PAYLOAD, PASSWORD, *secrets) if secret in line]
    return told
