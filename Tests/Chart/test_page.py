"""docs/kubernetes.md, command by command: kubectl and Helm carry them out against an API server of our own. What takes
a container engine is noted only; scripts/image-check follows the Dockerfile."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from chart_docs import ROOT
from kubernetes_api import KubernetesAPI
from rendering import strings

PAGE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
TOOLS = Path(sys.executable).parent
ENGINE = '#!/bin/sh\necho "$@" >>docker.log\n'


def blocks(title: str) -> list[tuple[str, str]]:
    """Language and text of each block below a heading, down to the next heading of any depth."""
    (section,) = re.findall(rf"^##+ {title}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    found = re.findall(r"^( *)```(\w*)\n(.*?)^\1```", section, re.MULTILINE | re.DOTALL)
    return [(language, re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)) for indent, language, text in found]


def over(base: dict, upper: dict) -> dict:
    both = {key for key in base.keys() & upper.keys() if isinstance(base[key], dict) and isinstance(upper[key], dict)}
    return {**base, **upper, **{key: over(base[key], upper[key]) for key in both}}


class Desk:
    """Somebody's directory and terminal, with the page in front of them."""

    def __init__(self, directory: Path, api: KubernetesAPI):
        self.directory = directory
        self.api = api
        (directory / "bin").mkdir()
        (directory / "bin/docker").write_text(ENGINE)
        (directory / "bin/docker").chmod(0o755)
        (directory / "helm").symlink_to(ROOT / "helm")
        (directory / "kubeconfig").write_text(api.kubeconfig)
        for key in ("AuthKey_ABC123DEFG.p8", "AuthKey.p8", "AuthKey_KLM123NOPQ.p8", "AuthKey_RST123UVWX.p8"):
            (directory / key).write_text(f"stands for {key}")

    def type(self, text: str) -> str:
        path = f"{self.directory / 'bin'}:{TOOLS}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text], cwd=self.directory, capture_output=True, text=True, timeout=60,
            check=False, env={"PATH": path, "KUBECONFIG": str(self.directory / "kubeconfig"),
                              "HOME": str(self.directory)},
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, title: str) -> str:
        return "".join(self.type(text) for language, text in blocks(title) if not language)

    @property
    def deployment(self) -> dict:
        return self.api.get("Deployment", "martlet")

    def check_files(self) -> set[str]:
        """Every file that the configuration names is in a Secret that is there; gives the apps."""
        config = yaml.safe_load(self.api.get("ConfigMap", "martlet")["data"]["martlet.json5"])
        pod = self.deployment["spec"]["template"]["spec"]
        names = {each["name"]: each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
        mounts = {each["mountPath"]: names.get(each["name"]) for each in pod["containers"][0]["volumeMounts"]}
        for file in (text for text in strings(config) if text.startswith("/secrets/")):
            directory, _, key = file.rpartition("/")
            assert key in self.api.get("Secret", mounts[directory])["data"], file
        return set(config["apps"])


@pytest.fixture
def desk(tmp_path):
    if not (TOOLS / "kubectl").exists() or not (TOOLS / "helm").exists():
        pytest.skip("kubectl and helm are not in .venv; scripts/setup has them for x86-64")
    with KubernetesAPI() as api:
        made = Desk(tmp_path, api)
        ((_, values),) = [each for each in blocks("Install in five commands") if each[0] == "yaml"]
        (tmp_path / "values.yaml").write_text(values)
        yield made


def test_five_commands_install_it(desk):
    commands = blocks("Install in five commands")[0][1]
    assert len(commands.strip().splitlines()) == 5
    said = desk.follow("Install in five commands")
    assert "STATUS: deployed" in said
    assert "Phase:          Succeeded" in said  # helm test
    assert desk.check_files() == {"shop-ios"}
    namespace = desk.api.get("Namespace", "push", "")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    # The image that was pushed is the one that is installed.
    build, push = (desk.directory / "docker.log").read_text().splitlines()
    image = desk.deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    assert (build, push) == (f"build --tag {image} .", f"push {image}")


def test_a_key_is_rotated_an_app_added_replicas_and_version_changed_and_changed_back(desk):
    desk.follow("Install in five commands")
    desk.follow("Rotate a key")
    assert "kubectl.kubernetes.io/restartedAt" in desk.deployment["spec"]["template"]["metadata"]["annotations"]
    secret = desk.api.get("Secret", "apns-shop")["data"]
    assert set(secret) == {"AuthKey.p8", "AuthKey_KLM123NOPQ.p8"}
    values = yaml.safe_load((desk.directory / "values.yaml").read_text())
    values["config"]["apps"]["shop-ios"]["token"] |= {
        "keyFile": "/secrets/shop/AuthKey_KLM123NOPQ.p8", "keyId": "KLM123NOPQ",
    }  # fmt: skip
    before = desk.deployment["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    ((_, added),) = [each for each in blocks("Add an app") if each[0] == "yaml"]
    (desk.directory / "values.yaml").write_text(yaml.safe_dump(over(values, yaml.safe_load(added))))
    desk.follow("Add an app")
    assert desk.check_files() == {"shop-ios", "travel-ios"}
    assert desk.deployment["spec"]["template"]["metadata"]["annotations"]["checksum/config"] != before

    desk.follow("Scale")
    assert desk.deployment["spec"]["replicas"] == 4

    upgrade, back = blocks("Upgrade")
    desk.type(upgrade[1])
    assert desk.deployment["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":0.2.0")
    desk.type(back[1])
    assert desk.deployment["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":0.1.0")


def test_a_command_that_is_wrong_would_be_noticed(desk):
    with pytest.raises(AssertionError, match="not found"):
        desk.type("kubectl --namespace nowhere create secret generic x --from-file=AuthKey.p8")
    desk.type("kubectl create namespace push")
    with pytest.raises(AssertionError, match="unknown flag"):
        desk.type("helm --namespace push install martlet helm/martlet --valeus values.yaml")
    with pytest.raises(AssertionError, match="name at least one broker"):
        desk.type("helm --namespace push install martlet helm/martlet")


def test_every_command_of_the_page_is_tried():
    tried = ("Install in five commands", "Rotate a key", "Add an app", "Scale", "Upgrade")
    everywhere = re.findall(r"^ *```\n", PAGE, re.MULTILINE)
    opened = [text for title in tried for language, text in blocks(title) if not language]
    closing = len(re.findall(r"^ *```\w", PAGE, re.MULTILINE)) + len(opened)
    assert len(everywhere) == closing + len(opened)
