"""The chart: what it renders for each way to use it, what it refuses, and that the service takes its configuration."""

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import helm_python as helm
import jsonschema
import kubernetes_validate
import pytest
import yaml
from yamllint import linter
from yamllint.config import YamlLintConfig

import chart_docs
import schemas
import standins
from chart_docs import CHART, ROOT
from processes import MockKafka, find_binary
from rendering import MATRIX, NAMESPACE, Rendered, chart, rendered, replaced, strings, values

KUBERNETES = ["1.25", "1.28", "1.31", "1.34", "1.37"]
#: What Helm's toYaml decides is not for us to lint: the indentation of lists, and the length of lines.
LINT = YamlLintConfig(
    "{extends: default, rules: {document-start: disable, line-length: disable, comments-indentation: disable, "
    "indentation: {spaces: 2, indent-sequences: whatever}, braces: {max-spaces-inside: 1}, "
    "empty-lines: {max: 1, max-start: 1, max-end: 1}, truthy: {check-keys: false}}}"
)
#: The page about running the service on Kubernetes.
PAGE = "docs/kubernetes.md"
every_way = pytest.mark.parametrize("way", MATRIX)


# Form


@every_way
@pytest.mark.parametrize("version", ["v1.25.0", "v1.37.0"])
def test_helm_lint_finds_nothing(way, version):
    report = helm.lint(CHART, values(way), strict=True, namespace=NAMESPACE, kube_version=version)
    assert report["errors"] == []
    assert [each for each in report["messages"] if each["severity"] > 1] == []


def test_helm_lint_takes_the_values_of_the_chart_alone():
    assert helm.lint(CHART, strict=True)["errors"] == []


@every_way
def test_the_rendered_yaml_is_clean(way):
    for path, text in rendered(way).texts.items():
        assert [f"{path}:{problem.line}: {problem.desc}" for problem in linter.run(text, LINT)] == []


@every_way
@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_knows_every_field(way, version):
    made = rendered(way)
    if version == "1.25":
        # As the chart makes it there, see test_an_older_kubernetes_gets_no_eviction_policy.
        made = Rendered(values(way, podDisruptionBudget__unhealthyPodEvictionPolicy=""))
    for each in made.objects:
        if each["kind"] not in schemas.SPECIFICATIONS and each["kind"] != "ExternalSecret":
            kubernetes_validate.validate(each, version, strict=True)


@every_way
def test_operators_know_every_field(way):
    for each in rendered(way).objects:
        if each["kind"] in schemas.SPECIFICATIONS:
            assert each["apiVersion"] == schemas.VERSIONS[each["kind"]]
            assert set(each) == {"apiVersion", "kind", "metadata", "spec"}
            jsonschema.validate(each["spec"], schemas.SPECIFICATIONS[each["kind"]])


@every_way
def test_objects_are_named_and_labelled_alike(way):
    made = rendered(way)
    name = made.values.get("fullnameOverride", "demo-martlet")
    names = [(each["kind"], each["metadata"]["name"]) for each in made.objects]
    assert len(set(names)) == len(names)
    for each in made.objects:
        if each["kind"] == "ExternalSecret":
            continue
        metadata = each["metadata"]
        assert metadata["name"].startswith(name)
        assert metadata["namespace"] in (NAMESPACE, "monitoring")
        assert metadata["labels"]["app.kubernetes.io/instance"] == "demo"
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_long_names_stay_within_what_kubernetes_takes():
    made = Rendered(values("statefulset"), name="a" * 53)
    assert len(made.workload["metadata"]["name"]) <= 52
    assert all(len(each["metadata"]["name"]) <= 63 for each in made.objects)


def test_the_package_renders_as_the_directory_does(tmp_path):
    with helm.Chart.load(helm.package(CHART, destination=tmp_path)) as packed:
        given = values("several-apps")
        assert packed.render(given, name="demo", namespace=NAMESPACE) == chart().render(
            given, name="demo", namespace=NAMESPACE
        )
        assert sorted(each["name"] for each in packed.files) == [
            ".helmignore",
            "README.md",
            "dashboards/martlet.json",
            "rules/martlet.yaml",
        ]


# Values, their schema, and the documentation


def test_readme_and_descriptions_are_current():
    stale = [path.name for path, text in chart_docs.pages().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run scripts/chart-check --write"


def _parts(schema: dict, path: str = ""):
    """Every schema in a schema, with its place in the values."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from _parts(part, f"{path}.{name}".lstrip("."))
    for key in ("additionalProperties", "items"):
        if isinstance(schema.get(key), dict):
            yield from _parts(schema[key], f"{path}.<name>" if key == "additionalProperties" else f"{path}[]")
    for part in schema.get("oneOf", []):
        if "type" in part:
            yield from _parts(part, path)


def test_the_schema_is_strict_and_says_what_each_value_means():
    for path, part in _parts(chart().schema):
        if "properties" in part:
            assert part.get("additionalProperties") is False, path
        for name, value in part.get("properties", {}).items():
            if name != "file":
                assert value.get("description"), f"{path}.{name} has no description"


def test_every_value_is_in_the_schema():
    def check(given: dict, schema: dict, path: str):
        for name, value in given.items():
            assert name in schema["properties"], f"{path}{name}"
            if isinstance(value, dict) and "properties" in schema["properties"][name]:
                check(value, schema["properties"][name], f"{path}{name}.")

    check(chart().values, chart().schema, "")


def test_the_schema_has_the_settings_of_the_service():
    listed = set()
    place = ""
    for line in (ROOT / "docs" / "settings.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## (?:`(.*)`|Top level)", line):
            place = f"{heading[1]}." if heading[1] else ""
        elif row := re.match(r"\| `(\w+)` \|", line):
            listed.add(place + row[1])
    groups = {".".join(each.split(".")[:depth]) for each in listed for depth in range(1, each.count(".") + 1)}
    own = {
        path.removeprefix("config.")
        for path, _ in _parts(chart().schema["properties"]["config"], "config")
        if path != "config" and "roperties.<name>" not in path and not path.endswith("[]")
    }
    assert own == listed | groups


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"replicaCuont": 3}, "replicaCuont"),
        ({"config__kafka__brokrs": "kafka:9092"}, "brokrs"),
        ({"config__apps__shop-ios__token__keyPath": "/x"}, "keyPath"),
        ({"config__delivery__drainTimeout": 25}, "drainTimeout"),
        ({"config__delivery__drainTimeout": "25"}, "drainTimeout"),
        ({"config__apps__shop-ios__environment": "development"}, "environment"),
        ({"secrets__Shop": {}}, "Shop"),
        ({"kind": "DaemonSet"}, "kind"),
        ({"prometheusRule__thresholds__endToEndSeconds": 60}, "endToEndSeconds"),
    ],
)
def test_the_schema_refuses(changes, name):
    with pytest.raises(helm.HelmError, match=name):
        Rendered(values(**changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"config__kafka__brokers": ""}, "config.kafka.brokers: name at least one broker"),
        ({"config__apps": {}}, "config.apps: name at least one app"),
        ({"config__kafka__groupInstanceId": "a"}, "set kind to StatefulSet"),
        ({"kind": "StatefulSet", "config__kafka__groupInstanceId": "a"}, "must differ from pod to pod"),
        ({"autoscaling__enabled": True, "keda__enabled": True}, "only one of them"),
        ({"serviceMonitor__enabled": True, "podMonitor__enabled": True}, "choose one"),
        ({"serviceMonitor__enabled": True, "service__enabled": False}, "needs service.enabled"),
        ({"autoscaling__enabled": True, "autoscaling__minReplicas": 9}, "above autoscaling.maxReplicas"),
        ({"autoscaling__enabled": True, "autoscaling__targetCPUUtilizationPercentage": None}, "nothing to scale by"),
        ({"config__delivery__drainTimeout": "${DRAIN}"}, "or set terminationGracePeriodSeconds"),
        ({"config__http__listen": "0.0.0.0:0"}, "the chart must know the port"),
        *(
            ({"config__http__listen": listen}, "come from outside of the pod")
            for listen in ("127.0.0.1:9464", "[::1]:9464", "localhost:9464", "unix:/run/9464")
        ),
        ({"terminationGracePeriodSeconds": 31}, "found 31, needed 32 at least"),
        ({"terminationGracePeriodSeconds": 60, "config__delivery__drainTimeout": "1m"}, "needed 67 at least"),
        ({"terminationGracePeriodMargin": 6}, "found 31, needed 32 at least"),
        ({"config__kafka__brokers": "${BROKERS}", "networkPolicy__enabled": True}, "networkPolicy.kafka.ports"),
        ({"config__kafka__brokers": "${BROKERS}", "keda__enabled": True}, "must name the brokers themselves"),
    ],
)
def test_what_cannot_work_is_refused_with_a_reason(changes, words):
    with pytest.raises(helm.HelmRenderError) as refusal:
        Rendered(values(**changes))
    assert words in str(refusal.value)


# Secrets


@every_way
def test_no_secret_material_is_in_any_object(way):
    for each in rendered(way).objects:
        assert each["kind"] != "Secret"
        assert not any("-----BEGIN" in text for text in strings(each))
    for group in ("properties", "consumerProperties", "producerProperties"):
        for name, value in rendered(way).config["kafka"].get(group, {}).items():
            if re.search(r"password|secret|\.pem$", name):
                assert isinstance(value, dict) or re.fullmatch(r"\$\{\w+\}", value), name


@pytest.mark.parametrize(
    "changes",
    [
        {"config__kafka__properties": {"sasl.password": "hunter2"}},
        {"config__kafka__consumerProperties": {"ssl.keystore.password": "hunter2"}},
        {"config__kafka__producerProperties": {"sasl.oauthbearer.client.secret": "hunter2"}},
        {"config__kafka__properties": {"ssl.key.pem": "hunter2"}},
        {"config__kafka__properties": {"sasl.password": "${A}hunter2"}},
        {"config__apps__shop-ios__token__keyFile": "-----BEGIN PRIVATE KEY-----hunter2"},
    ],
)
def test_a_secret_in_the_configuration_is_refused_and_not_repeated(changes):
    with pytest.raises(helm.HelmRenderError, match="would stand in a ConfigMap") as refusal:
        Rendered(values(**changes))
    assert "hunter2" not in str(refusal.value)


def test_secrets_are_mounted_by_reference_each_in_its_directory():
    made = rendered("several-apps")
    volumes = {each["name"]: each for each in made.pod["volumes"]}
    assert volumes["secret-shop"]["secret"] == {"secretName": "apns-shop", "defaultMode": 0o440}
    assert [each["path"] for each in volumes["secret-legacy"]["secret"]["items"]] == ["apns.p12", "password"]
    assert volumes["secret-staging"]["secret"]["optional"] is True
    mounts = {each["name"]: each for each in made.container["volumeMounts"]}
    for name in ("shop", "legacy", "staging"):
        assert mounts[f"secret-{name}"] == {"name": f"secret-{name}", "mountPath": f"/secrets/{name}", "readOnly": True}
    # Kubernetes does not renew what is mounted as a single file.
    assert not any("subPath" in each for each in made.container["volumeMounts"])
    assert rendered("defaults").pod["volumes"][1]["secret"]["secretName"] == "shop"


@every_way
def test_every_file_of_the_configuration_is_mounted(way):
    made = rendered(way)
    mounts = {each["mountPath"]: each["name"] for each in made.container["volumeMounts"]}
    volumes = {each["name"]: each for each in made.pod["volumes"]}
    for file in strings(made.config):
        if not file.startswith("/"):
            continue
        directory = next((each for each in mounts if file == each or file.startswith(f"{each}/")), None)
        assert directory, file
        items = volumes[mounts[directory]].get("secret", {}).get("items")
        assert items is None or file.removeprefix(f"{directory}/") in [each["path"] for each in items]
    assert "WARNING" not in made.notes


def test_the_notes_warn_of_a_secret_that_is_not_mounted():
    notes = Rendered(values(secrets={})).notes
    assert "WARNING: app shop-ios names /secrets/shop/AuthKey.p8, but `secrets` has no shop." in notes


# The service


@every_way
def test_the_service_takes_the_configuration(way, tmp_path):
    made = rendered(way)

    def moved(text: str) -> str:
        if not text.startswith("/"):
            return text
        if text == "/apps":
            (tmp_path / "apps").mkdir()
            app = values("defaults")["config"]["apps"]["shop-ios"]
            (tmp_path / "apps" / "shop-ios.json5").write_text(json.dumps(replaced(app, moved)))
        else:
            standins.write(tmp_path / text.lstrip("/"))
        return str(tmp_path / text.lstrip("/"))

    file = tmp_path / "martlet.json5"
    file.write_text(json.dumps(replaced(made.config, moved)))
    environment = {each["name"]: each.get("value", "value") for each in made.container["env"]}
    checked = subprocess.run(
        [find_binary(), "check", "--config", file, "--json"],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    report = json.loads(checked.stdout)
    assert report["problems"] == []
    assert (checked.returncode, report["ok"]) == (0, True)
    apps = made.config["apps"]
    assert report["apps"] == (1 if apps == "/apps" else len(apps))


def test_the_check_would_notice_a_wrong_configuration(tmp_path):
    file = tmp_path / "martlet.json5"
    file.write_text(json.dumps(rendered("defaults").config))
    checked = subprocess.run([find_binary(), "check", "--config", file], capture_output=True, text=True, check=False)
    assert checked.returncode == 78
    assert "no such file" in checked.stdout


@every_way
def test_helm_test_checks_the_same_configuration_with_the_same_mounts(way):
    made = rendered(way)
    (container,) = made.one("Pod")["spec"]["containers"]
    assert container["args"] == ["check", *made.container["args"][1:], "--connect"]
    assert made.container["args"][0] == "run"
    for key in ("image", "env", "volumeMounts", "securityContext"):
        assert container[key] == made.container[key]
    selector = made.workload["spec"]["selector"]["matchLabels"]
    assert made.one("Pod")["metadata"]["labels"]["app.kubernetes.io/name"] != selector["app.kubernetes.io/name"]


def test_parts_of_the_configuration_may_be_left_out_altogether():
    made = Rendered(values(config__http=None, config__delivery=None, config__log=None))
    assert set(made.config) == {"apps", "kafka"}
    assert made.container["ports"][0]["containerPort"] == 9464
    assert made.pod["terminationGracePeriodSeconds"] == 35


def test_helm_test_stays_at_home_if_it_is_told_to():
    assert "--connect" not in Rendered(values(check__connect=False)).one("Pod")["spec"]["containers"][0]["args"]


def test_numbers_stay_as_they_are():
    assert rendered("several-apps").config["delivery"]["maxInFlightBytes"] == 67108864
    assert '"maxInFlightBytes": 67108864' in rendered("several-apps").config_text


def _checksum(**changes: object) -> str:
    made = Rendered(values(**changes))
    return made.workload["spec"]["template"]["metadata"]["annotations"]["checksum/config"]


def test_pods_are_replaced_when_the_configuration_changes_and_only_then():
    assert _checksum() == _checksum(replicaCount=5)
    assert _checksum() != _checksum(config__log__level="debug")


@pytest.mark.parametrize(
    ("drain", "seconds"),
    [
        ("25s", 35), ("1.5m", 100), ("1h", 3610), ("500ms", 11), ("1500 ms", 12), ("2000ms", 12), ("0.3s", 11),
        ("100000000ns", 11), ("1m", 70), ("3.0s", 13),
    ],
)  # fmt: skip
def test_the_grace_period_follows_the_drain_timeout(drain, seconds):
    made = Rendered(values(config__delivery__drainTimeout=drain))
    assert made.pod["terminationGracePeriodSeconds"] == seconds


def test_the_grace_period_can_be_set():
    assert rendered("extras").pod["terminationGracePeriodSeconds"] == 120
    made = Rendered(values(config__delivery__drainTimeout="${DRAIN}", terminationGracePeriodSeconds=90))
    assert made.pod["terminationGracePeriodSeconds"] == 90
    assert Rendered(values(terminationGracePeriodSeconds=32)).pod["terminationGracePeriodSeconds"] == 32
    assert Rendered(values(terminationGracePeriodMargin=20)).pod["terminationGracePeriodSeconds"] == 45


@every_way
def test_probes_ask_the_port_that_the_service_listens_on(way):
    made = rendered(way)
    (port,) = made.container["ports"]
    assert port["containerPort"] == int(made.config["http"]["listen"].rsplit(":", 1)[1])
    paths = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    for probe, path in paths.items():
        assert made.container[probe]["httpGet"] == {"path": path, "port": port["name"]}


def test_a_stateful_set_gives_each_pod_a_membership_of_its_own():
    made = rendered("statefulset")
    assert made.workload["kind"] == "StatefulSet"
    assert made.config["kafka"]["groupInstanceId"] == "${POD_NAME}"
    assert made.container["env"][0]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    headless = next(each for each in made.all("Service") if each["spec"].get("clusterIP") == "None")
    assert made.workload["spec"]["serviceName"] == headless["metadata"]["name"]
    assert "groupInstanceId" not in rendered("defaults").config["kafka"]
    own = Rendered(values("statefulset", config__kafka__groupInstanceId="eu-${POD_NAME}"))
    assert own.config["kafka"]["groupInstanceId"] == "eu-${POD_NAME}"


# Security


VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def _faults(pod: dict) -> list[str]:
    """What the restricted Pod Security Standard has against a pod (kubernetes.io, "Pod Security Standards")."""
    faults = [f"{key} is set" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key)]
    faults += [f"volume {each['name']}" for each in pod["volumes"] if not VOLUMES & set(each)]
    whole = pod.get("securityContext", {})
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        own = container.get("securityContext", {})
        checks = {
            "privileged": not own.get("privileged"),
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "capabilities": own.get("capabilities", {}).get("drop") == ["ALL"]
            and set(own["capabilities"].get("add", [])) <= {"NET_BIND_SERVICE"},
            "runAsNonRoot": own.get("runAsNonRoot", whole.get("runAsNonRoot")) is True,
            "runAsUser": own.get("runAsUser", whole.get("runAsUser", 1)) != 0,
            "seccompProfile": own.get("seccompProfile", whole.get("seccompProfile", {})).get("type")
            in ("RuntimeDefault", "Localhost"),
            "procMount": own.get("procMount", "Default") == "Default",
            "hostPort": not any("hostPort" in port for port in container.get("ports", [])),
        }
        faults += [f"{container['name']}: {name}" for name, holds in checks.items() if not holds]
    return faults


@every_way
def test_pods_meet_the_restricted_standard_and_more(way):
    for pod in rendered(way).pods:
        assert _faults(pod) == []
        assert pod["securityContext"]["runAsUser"] == 65532
        assert pod["automountServiceAccountToken"] is False
        assert all(each["securityContext"]["readOnlyRootFilesystem"] is True for each in pod["containers"])
        assert all("limits" in each["resources"] for each in pod["containers"])


def test_the_policy_would_notice_a_privileged_container():
    loose = {"privileged": True, "allowPrivilegeEscalation": True, "capabilities": {"drop": []}}
    assert _faults(Rendered(values(securityContext=loose)).pod) == [
        "martlet: privileged", "martlet: allowPrivilegeEscalation", "martlet: capabilities",
    ]  # fmt: skip


def _ports(rule: dict) -> set:
    return {each["port"] for each in rule["ports"]}


def test_the_network_policy_lets_through_what_is_needed_and_nothing_else():
    made = rendered("network-policy")
    policy = made.one("NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    template = made.workload["spec"]["template"]
    job = Rendered(values("network-policy", topics={"create": True})).one("Job")["spec"]["template"]
    for labels in (each["metadata"]["labels"] for each in (template, made.one("Pod"), job)):
        (name,) = policy["podSelector"]["matchExpressions"]
        assert (name["operator"], labels[name["key"]] in name["values"]) == ("In", True)
        assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    (ingress,) = policy["ingress"]
    assert _ports(ingress) == {"metrics"}
    assert ingress["from"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "monitoring"}
    dns, kafka, apns, own = policy["egress"]
    assert _ports(dns) == {53}
    assert {each["protocol"] for each in dns["ports"]} == {"UDP", "TCP"}
    assert _ports(kafka) == {9092, 9094}
    assert _ports(apns) == {443, 2197}
    assert apns["to"] == [{"ipBlock": {"cidr": "17.0.0.0/8"}}]
    assert _ports(own) == {8443}


def test_the_ports_of_the_brokers_are_those_of_the_configuration_unless_they_are_named():
    listed = rendered("tls-sasl").one("NetworkPolicy")["spec"]["egress"][1]
    assert listed == {"ports": [{"port": 9093, "protocol": "TCP"}]}
    named = Rendered(values("tls-sasl", networkPolicy__kafka={"ports": [31000, 31001]}))
    assert _ports(named.one("NetworkPolicy")["spec"]["egress"][1]) == {31000, 31001}


# Topics


def test_the_job_makes_the_topics_of_the_configuration():
    made = rendered("statefulset")
    job = made.one("Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [
        "topics", "create", "--config", "/etc/martlet/martlet.json5", "--replication-factor", "3",
        "--topic", "push.requests:32", "--setting", "push.invalid-tokens:min.cleanable.dirty.ratio=0.25",
        "--setting", "push.results:retention.ms=86400000",
    ]  # fmt: skip
    for key in ("image", "env", "volumeMounts", "securityContext"):
        assert container[key] == made.container[key]
    # The Services and the budget must not take its pod for one of the workload.
    selector = made.workload["spec"]["selector"]["matchLabels"]
    assert not selector.items() <= job["spec"]["template"]["metadata"]["labels"].items()
    assert not rendered("defaults").all("Job")


def test_another_set_of_topics_is_another_job():
    def name(**changes: object) -> str:
        return Rendered(values("statefulset", **changes), name="a" * 53).one("Job")["metadata"]["name"]

    # A Job cannot be changed, and its pods are named after it.
    assert len(name()) <= 63
    assert name() == name(replicaCount=7)
    assert name() != name(topics__partitions={"push.requests": 64})
    assert name() != name(image__tag="9.9.9")
    assert name() != name(config__kafka__brokers="other:9092")


def test_the_program_takes_the_words_of_the_job(tmp_path):
    made = rendered("statefulset")
    (container,) = made.one("Job")["spec"]["template"]["spec"]["containers"]
    file = tmp_path / "martlet.json5"
    config = replaced(made.config, lambda text: str(tmp_path / text.lstrip("/")) if text.startswith("/") else text)
    standins.write(tmp_path / "secrets/shop/AuthKey.p8")
    with MockKafka(find_binary(), {"other": 1}, tmp_path / "kafka.log") as kafka:
        config["kafka"]["brokers"] = kafka.bootstrap
        file.write_text(json.dumps(config))
        words = [str(file) if word.endswith(".json5") else word for word in container["args"]]
        tried = subprocess.run(
            [find_binary(), *words, "--dry-run", "--json"], env={"POD_NAME": "demo-martlet-0"}, capture_output=True,
            text=True, timeout=30, check=False,
        )  # fmt: skip
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert '"push.requests"' in tried.stdout


# Availability and scaling


@every_way
def test_selectors_find_the_pods_and_never_change(way):
    made = rendered(way)
    labels = made.workload["spec"]["template"]["metadata"]["labels"]
    selector = made.workload["spec"]["selector"]["matchLabels"]
    assert set(selector) == {"app.kubernetes.io/name", "app.kubernetes.io/instance"}
    assert selector.items() <= labels.items()
    for each in made.all("Service"):
        assert each["spec"]["selector"] == selector
    for kind in ("PodDisruptionBudget", "PodMonitor"):
        for each in made.all(kind):
            assert each["spec"]["selector"]["matchLabels"] == selector
    for each in made.all("ServiceMonitor"):
        matching = [
            service
            for service in made.all("Service")
            if each["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        ]
        assert len(matching) == 1, "each pod must be read once"


@pytest.mark.parametrize(
    ("changes", "is_made"),
    [
        ({"replicaCount": 2}, True),
        ({"replicaCount": 1}, False),
        ({"replicaCount": 1, "autoscaling__enabled": True}, True),
        ({"autoscaling__enabled": True, "autoscaling__minReplicas": 1}, False),
        ({"keda__enabled": True, "keda__minReplicas": 0}, False),
        ({"podDisruptionBudget__enabled": False}, False),
    ],
)
def test_a_disruption_budget_is_for_more_than_one_replica(changes, is_made):
    assert bool(Rendered(values(**changes)).all("PodDisruptionBudget")) is is_made


def test_an_outage_of_kafka_does_not_keep_a_node_from_being_drained():
    budget = rendered("defaults").one("PodDisruptionBudget")["spec"]
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    own = Rendered(values(podDisruptionBudget__unhealthyPodEvictionPolicy="IfHealthyBudget"))
    assert own.one("PodDisruptionBudget")["spec"]["unhealthyPodEvictionPolicy"] == "IfHealthyBudget"
    without = Rendered(values(podDisruptionBudget__unhealthyPodEvictionPolicy=""))
    assert "unhealthyPodEvictionPolicy" not in without.one("PodDisruptionBudget")["spec"]


@pytest.mark.parametrize(("version", "is_there"), [("v1.25.0", False), ("v1.26.9", False), ("v1.27.0", True)])
def test_an_older_kubernetes_gets_no_eviction_policy(version, is_there):
    made = subprocess.run(
        [Path(sys.executable).parent / "helm", "template", CHART, "--values", MATRIX["defaults"], "--show-only",
         "templates/poddisruptionbudget.yaml", "--kube-version", version],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert ("unhealthyPodEvictionPolicy: AlwaysAllow" in made.stdout) is is_there


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.parametrize(
    ("scaler", "made_kind"), [("autoscaling", "HorizontalPodAutoscaler"), ("keda", "ScaledObject")]
)
def test_an_autoscaler_alone_sets_the_number_of_pods(kind, scaler, made_kind):
    made = Rendered(values(kind=kind, **{f"{scaler}__enabled": True}))
    assert "replicas" not in made.workload["spec"]
    target = made.one(made_kind)["spec"]["scaleTargetRef"]
    assert target == {"apiVersion": "apps/v1", "kind": kind, "name": made.workload["metadata"]["name"]}
    assert Rendered(values(kind=kind, replicaCount=3)).workload["spec"]["replicas"] == 3


def test_lag_of_each_request_topic_scales():
    first, second = rendered("monitors").one("ScaledObject")["spec"]["triggers"]
    assert first == {
        "type": "kafka",
        "metadata": {
            "bootstrapServers": "kafka-1:9092,kafka-2:9092",
            "consumerGroup": "martlet",
            "topic": "push.requests",
            "lagThreshold": "200000",
            "offsetResetPolicy": "earliest",
            "sasl": "scram_sha512",
            "tls": "enable",
        },
        "authenticationRef": {"name": "kafka"},
    }
    assert second["metadata"]["topic"] == "push.requests.bulk"


def test_both_autoscalers_go_down_slowly():
    behavior = Rendered(values(autoscaling__enabled=True)).one("HorizontalPodAutoscaler")["spec"]["behavior"]
    scaled = Rendered(values(keda__enabled=True)).one("ScaledObject")["spec"]
    assert scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] == behavior
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 600


def test_pods_spread_over_nodes_and_zones():
    made = rendered("defaults")
    for each in made.pod["topologySpreadConstraints"]:
        assert each["labelSelector"]["matchLabels"] == made.workload["spec"]["selector"]["matchLabels"]
    (own,) = rendered("extras").pod["topologySpreadConstraints"]
    assert own["labelSelector"] == {"matchLabels": {"tier": "push"}}


def test_the_image_is_that_of_the_chart_or_the_digest():
    version = re.search(r'text = "(.*)"', (ROOT / "Sources/Service/Version.swift").read_text())[1]
    assert rendered("defaults").container["image"] == f"martlet:{version}"
    assert chart().metadata["appVersion"] == version
    assert rendered("extras").container["image"].startswith("registry.example.com/push/martlet@sha256:0123")
    assert Rendered(values(image__tag="1.2.3")).container["image"] == "martlet:1.2.3"


@functools.cache
def _documented() -> list[dict]:
    """The YAML examples of the chart's README and of the page about Kubernetes."""
    pages = [CHART / "README.md", ROOT / "docs" / "kubernetes.md"]
    return [
        yaml.safe_load(block)
        for page in pages
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    ]


def test_the_examples_of_the_documentation_are_taken():
    assert _documented()
    for example in _documented():
        merged = chart().merge_values(values())
        jsonschema.validate(example, chart().schema)
        assert example.keys() <= merged.keys()
        made = Rendered(_over(values(), example))
        assert made.workload


def _over(base: dict, upper: dict) -> dict:
    made = dict(base)
    for key, value in upper.items():
        both = isinstance(value, dict) and isinstance(made.get(key), dict)
        made[key] = _over(made[key], value) if both else value
    return made
