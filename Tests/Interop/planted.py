"""Secrets that tests plant, and the search for them in what the service wrote.

As a program it searches what the Swift tests left, which plant the same ones (`Tests/TestSupport/Planted.swift`):

    planted.py DIRECTORY OUTPUT…

The directory has `services.log`, the logs of the services that they ran, and `secrets`, a secret in each line: parts of
keys that were made at random. The outputs are what the tests printed. It exits with 1 if anything was told, and with 2
if there was nothing to search or to search for.
"""

import re
import sys
from collections.abc import Iterable, Sequence
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


def _searched(path: Path) -> str:
    """All but what the runner says of a test's cases: their arguments, planted ones too."""
    lines = path.read_text(errors="replace").splitlines()
    return "\n".join(line for line in lines if not line.startswith("◇ Test case passing"))


def main(arguments: Sequence[str]) -> int:
    directory, *outputs = map(Path, arguments)
    log, noted = directory / "services.log", directory / "secrets"
    secrets = noted.read_text().split() if noted.exists() else []
    lines = log.read_text(errors="replace").count("\n") if log.exists() else 0
    if not secrets or not lines or not all(output.stat().st_size for output in outputs):
        print(f"{len(secrets)} secrets, {lines} lines of logs, {len(outputs)} outputs: some of it is missing")
        return 2
    leaks = [f"{path.name} tells {leak}" for path in (log, *outputs) for leak in found(_searched(path), secrets)]
    print(*leaks, sep="\n", end="\n" if leaks else "")
    print(f"{lines} lines of logs, {len(outputs)} outputs, {len(secrets)} secrets of keys: {len(leaks)} were told")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
