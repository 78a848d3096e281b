"""The bill of materials: CycloneDX takes it, and it has what the program loads."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

import sbom
from processes import find_binary

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def program() -> Path:
    return find_binary()


@pytest.fixture(scope="module")
def bill(program) -> dict:
    return sbom.bill(program, sbom.System(Path("/")), "1.2.3", "6.3.1")


@pytest.fixture(scope="module")
def packages(bill) -> dict[str, dict]:
    return {each["name"]: each for each in bill["components"]}


def test_cyclonedx_takes_it(bill):
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    fault = validator.validate_str(json.dumps(bill))
    assert fault is None, fault
    # And would not take anything.
    assert validator.validate_str(json.dumps({**bill, "components": [{"name": "no type"}]})) is not None


def test_it_has_the_libraries_that_the_loader_would_load(program, packages):
    loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for name, path in re.findall(r"^\s*(\S+\.so\S*) => (/\S+)", loaded, re.MULTILINE):
        if sbom.SWIFT.match(name):
            continue
        real = str(Path(path).resolve())
        owners = [
            each for each in packages.values() if any(f"{real} " in p["value"] for p in each.get("properties", []))
        ]
        assert len(owners) == 1, name
    assert {"librdkafka1", "libnghttp2-14", "libssl3", "libc6", "swift-runtime"} <= set(packages)


def test_versions_are_those_that_are_installed(packages):
    for name in ("librdkafka1", "libnghttp2-14", "libssl3"):
        shown = subprocess.run(
            ["dpkg-query", "--show", "--showformat=${Version}", name], capture_output=True, text=True, check=True
        ).stdout
        assert packages[name]["version"] == shown
        parsed = PackageURL.from_string(packages[name]["purl"])
        assert (parsed.type, parsed.namespace, parsed.name, parsed.version) == ("deb", "debian", name, shown)


def test_licences_are_named(packages):
    assert {"license": {"id": "BSD-2-Clause"}} in packages["librdkafka1"]["licenses"]
    assert packages["libnghttp2-14"]["licenses"] == [{"license": {"id": "MIT"}}]
    assert {"license": {"id": "Apache-2.0"}} in packages["libssl3"]["licenses"]
    assert not [name for name, each in packages.items() if not each.get("licenses")]


def test_what_depends_on_what_is_whole(bill):
    known = {each["bom-ref"] for each in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    needs = {each["ref"]: set(each.get("dependsOn", [])) for each in bill["dependencies"]}
    assert set(needs) == known
    reached, left = set(), [bill["metadata"]["component"]["bom-ref"]]
    while left:
        one = left.pop()
        if one not in reached:
            reached.add(one)
            left += needs[one]
    assert reached == known


def test_the_same_program_gives_the_same_bill(program, bill):
    again = sbom.bill(program, sbom.System(Path("/")), "1.2.3", "6.3.1")
    assert again == bill
    assert sbom.bill(program, sbom.System(Path("/")), "1.2.4", "6.3.1")["serialNumber"] != bill["serialNumber"]


def test_a_library_that_is_not_in_the_root_is_missed(tmp_path, program):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID=debian\nVERSION_ID="12"\n')
    with pytest.raises(SystemExit, match="is not in"):
        sbom.bill(program, sbom.System(tmp_path), "1", "1")
