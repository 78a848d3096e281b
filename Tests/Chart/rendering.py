"""The chart as Helm's own engine renders it."""

import functools
import json
from copy import deepcopy

import helm_python as helm
import yaml

from chart_docs import CHART

NAMESPACE = "push"
RELEASE = "demo"
#: The values that the chart is tried with: each file is a way to use it.
MATRIX = {path.name.removesuffix("-values.yaml"): path for path in sorted((CHART / "ci").glob("*-values.yaml"))}


@functools.cache
def chart() -> helm.Chart:
    return helm.Chart.load(CHART)


@functools.cache
def _values(name: str) -> dict:
    return yaml.safe_load(MATRIX[name].read_text(encoding="utf-8"))


def values(name: str = "defaults", **changes: object) -> dict:
    """The values of one file, with changes: `config__kafka__group="push"` sets `config.kafka.group`."""
    made = deepcopy(_values(name))
    for path, value in changes.items():
        place = made
        *parents, last = path.split("__")
        for key in parents:
            place = place.setdefault(key, {})
        place[last] = value
    return made


class Rendered:
    """What the chart makes of some values."""

    def __init__(self, given: dict, name: str = RELEASE):
        self.values = given
        made = chart().render(given, name=name, namespace=NAMESPACE)
        self.notes = next(text for path, text in made.items() if path.endswith("NOTES.txt"))
        self.texts = {path: text for path, text in made.items() if path.endswith(".yaml") and text.strip()}
        self.objects = [each for text in self.texts.values() for each in yaml.safe_load_all(text) if each]

    def all(self, kind: str) -> list[dict]:
        return [each for each in self.objects if each["kind"] == kind]

    def one(self, kind: str) -> dict:
        (found,) = self.all(kind)
        return found

    @property
    def workload(self) -> dict:
        (found,) = self.all("Deployment") + self.all("StatefulSet")
        return found

    @property
    def pod(self) -> dict:
        """The specification of the workload's pods."""
        return self.workload["spec"]["template"]["spec"]

    @property
    def container(self) -> dict:
        return next(each for each in self.pod["containers"] if each["name"] == "martlet")

    @property
    def config(self) -> dict:
        return json.loads(self.config_text)

    @property
    def config_text(self) -> str:
        (text,) = [each["data"]["martlet.json5"] for each in self.all("ConfigMap") if "martlet.json5" in each["data"]]
        return text

    @property
    def pods(self) -> list[dict]:
        """The specification of every pod, those of the test and of the topics' Job included."""
        jobs = [each["spec"]["template"]["spec"] for each in self.all("Job")]
        return [self.pod, *(each["spec"] for each in self.all("Pod")), *jobs]

    @property
    def rules(self) -> list[dict]:
        return [rule for group in self.one("PrometheusRule")["spec"]["groups"] for rule in group["rules"]]

    @property
    def alerts(self) -> list[dict]:
        return [rule for rule in self.rules if "alert" in rule]


@functools.cache
def rendered(name: str) -> Rendered:
    return Rendered(values(name))


def strings(value: object):
    """Every text in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def replaced(value: object, change) -> object:
    """The value with `change` applied to every text in it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: replaced(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [replaced(each, change) for each in value]
    return value
