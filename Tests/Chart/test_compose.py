"""compose.yaml and what it mounts: well-formed, of exact versions, and the service takes its configuration."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from chart_docs import ROOT
from processes import MockKafka, Program, find_binary
from waiting import until

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]


@pytest.mark.parametrize("service", SERVICES)
def test_images_have_exact_tags_or_are_built_here(service):
    given = SERVICES[service]
    assert given.get("build") == "." or re.search(r":v?\d+\.\d+\.\d+$", given["image"])


@pytest.mark.parametrize("service", SERVICES)
def test_what_a_service_needs_is_there(service):
    given = SERVICES[service]
    assert set(given.get("depends_on", [])) <= set(SERVICES)
    for volume in given.get("volumes", []):
        source = volume.split(":")[0]
        assert (ROOT / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]


def test_the_ports_are_open_to_this_machine_alone():
    published = [port for each in SERVICES.values() for port in each.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_topics_are_made_from_the_configuration_of_the_service():
    topics, martlet = SERVICES["topics"], SERVICES["martlet"]
    assert topics["command"] == ["topics", "create", "--config", "/etc/martlet/martlet.json5"]
    assert topics["image"] == martlet["image"]
    assert set(topics["volumes"]) <= set(martlet["volumes"])
    assert martlet["depends_on"]["topics"] == {"condition": "service_completed_successfully"}
    assert SERVICES["kafka"]["environment"]["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"


def test_the_service_takes_its_configuration_with_the_key_that_the_look_alike_makes(tmp_path):
    command = [
        "--listen=127.0.0.1:0" if each.startswith("--listen=") else each.replace("/secrets", str(tmp_path))
        for each in SERVICES["apns"]["command"]
    ]
    mounts = [each.split(":") for each in SERVICES["martlet"]["volumes"]]
    (source,) = [each[0] for each in mounts if each[1] == "/etc/martlet/martlet.json5"]
    assert ["secrets", "/secrets", "ro"] in mounts
    config = tmp_path / "martlet.json5"
    config.write_text((ROOT / source).read_text(encoding="utf-8").replace("/secrets", str(tmp_path)))
    topics = [str(config) if each.endswith(".json5") else each for each in SERVICES["topics"]["command"]]
    with (
        Program([find_binary(), *command], tmp_path / "apns.log"),
        MockKafka(find_binary(), {}, tmp_path / "kafka.log") as kafka,
    ):
        until("the look-alike's authority", (tmp_path / "ca.pem").is_file)
        checked = subprocess.run(
            [find_binary(), "check", "--config", config, "--json"], capture_output=True, text=True, check=False
        )
        config.write_text(config.read_text(encoding="utf-8").replace("kafka:9092", kafka.bootstrap))
        planned = subprocess.run(
            [find_binary(), *topics, "--dry-run", "--json"], capture_output=True, text=True, check=False
        )
    report = json.loads(checked.stdout)
    assert (report["ok"], report["problems"], report["apps"]) == (True, [], 1)
    settings = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    names = {topic["topic"] for topic in json.loads(planned.stdout)["topics"]}
    assert names == set(re.findall(r'"(push\.[a-z-]+)"', settings))


def test_prometheus_takes_its_configuration_and_the_rules(tmp_path):
    mounts = dict(each.split(":")[:2] for each in SERVICES["prometheus"]["volumes"])
    inside = {target: ROOT / source for source, target in mounts.items() if source.startswith(".")}
    text = inside.pop("/etc/prometheus/prometheus.yml").read_text(encoding="utf-8")
    for target, source in inside.items():
        assert target in text
        text = text.replace(target, str(source))
    path = tmp_path / "prometheus.yaml"
    path.write_text(text)
    checked = subprocess.run(["promtool", "check", "config", path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "rules found" in checked.stdout
    # The rules look for the job of this name.
    (job,) = yaml.safe_load(text)["scrape_configs"]
    assert job == {"job_name": "martlet", "static_configs": [{"targets": ["martlet:9464"]}]}


def test_compose_itself_takes_the_file():
    """Its own program, which needs no engine to read a file."""
    program = Path(sys.executable).with_name("docker-compose")
    command = [program, "--project-directory", ROOT, "--file", ROOT / "compose.yaml", "config", "--format", "json"]
    read = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert read.returncode == 0, read.stderr
    assert not read.stderr, read.stderr
    assert set(json.loads(read.stdout)["services"]) == set(SERVICES)


def test_compose_would_notice_a_key_that_it_does_not_know(tmp_path):
    path = tmp_path / "compose.yaml"
    path.write_text("services: {martlet: {image: martlet, helthcheck: {}}}")
    program = Path(sys.executable).with_name("docker-compose")
    read = subprocess.run([program, "--file", path, "config"], capture_output=True, text=True, timeout=30, check=False)
    assert read.returncode != 0
    assert "helthcheck" in read.stderr
