"""The systemd unit: systemd takes it, finds little to say about its sandbox, and it fits the service."""

import configparser
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy/systemd/martlet.service"
#: systemd-analyze's score, where 10 is no protection at all. What is left: it uses the network, without a list of
#: addresses (brokers have any), and it sees the root file system.
MOST_EXPOSED = 1.4


@pytest.fixture(scope="module")
def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str
    parser.read(UNIT, encoding="utf-8")
    return parser


@pytest.fixture
def placed(tmp_path) -> Path:
    """The unit as it would lie, with a program that is there."""
    path = tmp_path / "martlet.service"
    path.write_text(UNIT.read_text(encoding="utf-8").replace("/usr/local/bin/martlet", "/bin/true"))
    return path


def test_systemd_finds_no_fault(placed):
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", placed], capture_output=True, text=True, timeout=30, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_systemd_would_notice_a_fault(placed):
    placed.write_text(placed.read_text().replace("ProtectSystem=strict", "ProtectSytem=strict"))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", placed], capture_output=True, text=True, timeout=30, check=False
    )
    assert "ProtectSytem" in checked.stderr


def test_the_sandbox_is_as_tight_as_it_is_said_to_be(placed):
    checked = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}", placed],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    score = re.search(r"exposure level for martlet.service: ([\d.]+)", checked.stdout)
    assert score, checked.stdout + checked.stderr
    assert float(score[1]) == MOST_EXPOSED
    assert checked.returncode == 0
    page = (ROOT / "docs/machines.md").read_text(encoding="utf-8")
    assert f"scores {MOST_EXPOSED}" in page


def test_it_speaks_the_protocol_that_the_service_speaks(unit):
    service = unit["Service"]
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "main")
    assert service["ExecStart"] == "/usr/local/bin/martlet run --config /etc/martlet/martlet.json5"
    assert service["ExecReload"].endswith("-HUP $MAINPID")
    # The service needs two beats in this time, and a loop may stand still for 15 seconds before it counts as stuck.
    assert int(service["WatchdogSec"].removesuffix("s")) >= 30


def test_what_no_restart_mends_is_not_restarted(unit):
    source = (ROOT / "Sources/martlet/ExitCode.swift").read_text(encoding="utf-8")
    codes = dict(re.findall(r"(\w+) = ExitCode\((?:rawValue: )?(\d+)\)", source)) or dict(
        re.findall(r"case (\w+) = (\d+)", source)
    )
    assert unit["Service"]["RestartPreventExitStatus"].split() == [codes["usage"], codes["configuration"]]


def test_the_user_of_the_unit_is_made_by_the_sysusers_file(unit):
    line = (ROOT / "deploy/systemd/martlet.sysusers").read_text(encoding="utf-8").split()
    assert line[:2] == ["u", unit["Service"]["User"]]
