"""The bill of materials of the program, as CycloneDX 1.6 (JSON): what is linked into it, what it loads when it starts,
which package of Debian each library comes from, under which licence, and what depends on what. See scripts/sbom."""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path

#: Names of licences in Debian's copyright files, and what SPDX calls them. Others keep Debian's name.
SPDX = {
    "apache-2.0": "Apache-2.0",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "bsd": "BSD-3-Clause",
    "expat": "MIT",
    "mit": "MIT",
    "isc": "ISC",
    "zlib": "Zlib",
    "gpl-2": "GPL-2.0-only",
    "gpl-2+": "GPL-2.0-or-later",
    "gpl-3": "GPL-3.0-only",
    "gpl-3+": "GPL-3.0-or-later",
    "lgpl-2.1": "LGPL-2.1-only",
    "lgpl-2.1+": "LGPL-2.1-or-later",
    "lgpl-2.0+": "LGPL-2.0-or-later",
    "lgpl-3+": "LGPL-3.0-or-later",
}
#: By source package: those whose copyright file tells it in prose.
IN_PROSE = {
    "glibc": "LGPL-2.1-or-later",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "gcc-14": "GPL-3.0-or-later WITH GCC-exception-3.1",
}
#: Libraries of Swift's own: linked in, or beside the toolchain for a program of this machine.
SWIFT = re.compile(r"lib(swift|_?Foundation|dispatch|BlocksRuntime)")
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "martlet.sbom")


def output_of(*command: object) -> str:
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def needed(file: Path) -> list[str]:
    """The libraries that a program or library asks the loader for."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "--dynamic", file))


def runpath(program: Path) -> list[Path]:
    """Where the program has the loader look first."""
    found = re.findall(r"\(RU?N?PATH\).*\[(.+)\]", output_of("readelf", "--dynamic", program))
    return [Path(part) for each in found for part in each.split(":") if part.startswith("/")]


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@dataclass
class Package:
    """A package of Debian, as far as the program loads it."""

    name: str
    version: str
    architecture: str
    source: str
    files: dict[str, str] = field(default_factory=dict)
    needs: set[str] = field(default_factory=set)


class System:
    """A root of Debian's: where its libraries are, and which packages they are of."""

    def __init__(self, root: Path):
        self.root = root
        release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', (root / "etc/os-release").read_text(), re.MULTILINE))
        self.distribution = f"{release['ID']}-{release['VERSION_ID']}"
        database = root / "var/lib/dpkg"
        #: Path of a library to the package that owns it.
        self._owners = {
            line: file.stem.partition(":")[0]
            for file in database.glob("info/*.list")
            for line in file.read_text().splitlines()
            if ".so" in line
        }
        status = (database / "status").read_text() if (database / "status").exists() else ""
        self._fields = {}
        for paragraph in status.split("\n\n"):
            fields = dict(re.findall(r"^(Package|Version|Architecture|Source): (\S+)", paragraph, re.MULTILINE))
            if fields:
                self._fields[fields["Package"]] = fields

    def find(self, library: str) -> Path:
        for directory in sorted(self.root.glob("usr/lib/*-linux-gnu*")):
            if (directory / library).exists():
                return (directory / library).resolve()
        raise SystemExit(f"sbom: {library} is not in {self.root}")

    def package(self, file: Path) -> Package:
        inside = "/" + str(file.relative_to(self.root.resolve()))
        # With a merged /usr, packages may still own the path without it.
        for path in (inside, inside.removeprefix("/usr")):
            if name := self._owners.get(path):
                fields = self._fields[name]
                return Package(name, fields["Version"], fields["Architecture"], fields.get("Source", name))
        raise SystemExit(f"sbom: no package owns {inside}")

    def licences(self, package: Package) -> list[dict]:
        if expression := IN_PROSE.get(package.source):
            return [{"expression": expression}]
        path = self.root / "usr/share/doc" / package.name / "copyright"
        text = path.read_text(errors="replace") if path.exists() else ""
        names = sorted({name.strip() for name in re.findall(r"^License: *(\S.*)$", text, re.MULTILINE)}, key=str.lower)
        # A machine-readable file says under which licences the whole is: in its first paragraph about files.
        first = re.search(r"^Files: \*\n(?:.+\n)*?License: *(\S.*)$", text, re.MULTILINE)
        if first:
            names = [first[1].strip()]
        found = [SPDX.get(name.lower()) for name in names]
        return [
            {"license": {"id": known} if known else {"name": name}} for name, known in zip(names, found, strict=True)
        ]


def gather(program: Path, system: System) -> tuple[dict[str, Package], set[str]]:
    """All packages that loading the program takes, and those that it asks for itself."""
    packages: dict[str, Package] = {}
    owners: dict[str, str] = {}

    def visit(library: str) -> str:
        if library in owners:
            return owners[library]
        file = system.find(library)
        package = system.package(file)
        package = packages.setdefault(package.name, package)
        owners[library] = package.name
        package.files["/" + str(file.relative_to(system.root.resolve()))] = digest(file)
        package.needs |= {visit(each) for each in needed(file)} - {package.name}
        return package.name

    # Beside the toolchain Swift's own libraries have needs too; those of Debian's among them count as the program's.
    asked, left = set(), [program]
    while left:
        for each in needed(left.pop()):
            if each not in asked:
                asked.add(each)
                left += [place / each for place in runpath(program) if SWIFT.match(each) and (place / each).exists()]
    return packages, {visit(each) for each in asked if not SWIFT.match(each)}


def toolchain() -> str:
    """The version of Swift, of this machine's toolchain or as `SWIFT_VERSION` says."""
    if version := os.environ.get("SWIFT_VERSION"):
        return version
    found = re.search(r"Swift version (\S+)", output_of("swift", "--version"))
    return found[1] if found else "unknown"


def bill(program: Path, system: System, version: str, swift: str) -> dict:
    packages, direct = gather(program, system)
    martlet = f"pkg:generic/martlet@{version}"
    runtime = f"pkg:generic/swift-runtime@{swift}"

    def purl(package: Package) -> str:
        escaped = package.version.replace("+", "%2B").replace(":", "%3A")
        return f"pkg:deb/debian/{package.name}@{escaped}?arch={package.architecture}&distro={system.distribution}"

    components = [
        {
            "type": "library",
            "bom-ref": runtime,
            "name": "swift-runtime",
            "version": swift,
            "description": "Swift's standard library and FoundationEssentials, "
            + ("loaded by" if any(SWIFT.match(each) for each in needed(program)) else "linked into")
            + " the program",
            "licenses": [{"expression": "Apache-2.0 WITH Swift-exception"}],
            "purl": runtime,
        }
    ]
    for package in sorted(packages.values(), key=lambda each: each.name):
        component = {
            "type": "library",
            "bom-ref": purl(package),
            "name": package.name,
            "version": package.version,
            "licenses": system.licences(package),
            "purl": purl(package),
            "properties": [
                {"name": "martlet:source-package", "value": package.source},
                *(
                    {"name": "martlet:file", "value": f"{path} sha256:{value}"}
                    for path, value in sorted(package.files.items())
                ),
            ],
        }
        components.append({name: value for name, value in component.items() if value})
    dependencies = [
        {"ref": martlet, "dependsOn": sorted([runtime, *(purl(packages[name]) for name in direct)])},
        {"ref": runtime},
        *(
            {"ref": purl(package), "dependsOn": sorted(purl(packages[name]) for name in package.needs)}
            if package.needs
            else {"ref": purl(package)}
            for package in sorted(packages.values(), key=lambda each: each.name)
        ),
    ]
    made = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": martlet,
                "name": "martlet",
                "version": version,
                "hashes": [{"alg": "SHA-256", "content": digest(program)}],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": martlet,
            },
        },
        "components": components,
        "dependencies": dependencies,
    }
    # The same program and libraries give the same bill: its number follows from what is in it.
    made["serialNumber"] = f"urn:uuid:{uuid.uuid5(NAMESPACE, json.dumps(made, sort_keys=True))}"
    return made


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/sbom")
    parser.add_argument("program", type=Path)
    parser.add_argument("--root", type=Path, default=Path("/"), help="the root that the program runs in")
    arguments = parser.parse_args()
    source = Path(__file__).resolve().parents[1] / "Sources/Service/Version.swift"
    version = re.search(r'text = "(.*)"', source.read_text(encoding="utf-8"))[1]
    json.dump(bill(arguments.program, System(arguments.root), version, toolchain()), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
