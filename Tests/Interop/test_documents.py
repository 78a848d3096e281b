"""What the pages and the AsyncAPI document show is what the service takes and writes."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import referencing
import yaml

import forms
from contract import Validator, compact, read_schema, schema
from kafka_io import Outgoing
from processes import ROOT
from test_schemas import NAMES, Outcomes
from world import as_record

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
ASYNCAPI = yaml.safe_load((ROOT / "schemas/asyncapi.yaml").read_text())
EVENTS = {"martlet.push.result": "result", "martlet.push.invalid-token": "invalid-token"}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def kind_of(document: Any) -> str | None:
    """Which of the contract's records an example is; `None` if it is none of them."""
    if not isinstance(document, dict):
        return None
    if "specversion" in document:
        return "event"
    if "status" in document and "source" in document:
        return "result"
    if "detected_at" in document:
        return "invalid-token"
    return "request" if "app" in document and "payload" in document else None


def examples() -> list[tuple[str, str, dict[str, Any]]]:
    """The page, the kind and the document of each example, and those of the schemas."""
    found = []
    for page in PAGES:
        for text in blocks(page, "json"):
            # A block may hold JSON lines.
            try:
                documents = [json.loads(text)]
            except ValueError:
                documents = [json.loads(line) for line in text.splitlines() if line.strip()]
            found += [(page.name, kind, one) for one in documents if (kind := kind_of(one)) is not None]
    return found


def event_record(document: dict[str, Any]) -> Outgoing:
    return Outgoing(compact(document).encode(), headers=[("content-type", b"application/cloudevents+json")])


def test_each_example_of_the_pages_is_real(world):
    found = examples()
    kinds = Counter(kind for _, kind, _ in found)
    assert kinds["request"] >= 4
    assert kinds["result"] >= 1
    assert kinds["event"] >= 2
    assert kinds["invalid-token"] >= 1
    assert {page for page, *_ in found} >= {"README.md", "contract.md"}
    requests = []
    for page, kind, document in found:
        try:
            if kind != "event":
                schema(kind, closed=True).validate(document)
            elif document["type"] in EVENTS:
                schema(EVENTS[document["type"]], closed=True).validate(document["data"])
            else:
                requests.append((page, event_record(document), document["data"]))
        except Exception as error:
            raise AssertionError(f"{page}: {compact(document)}: {error}") from error
        if kind == "request":
            requests.append((page, as_record(document), document))
    world.martlet().wait_ready()
    # Some expire at a time that has passed by now; that makes none of them invalid.
    items = [len(fields.get("tokens", [1])) for _, _, fields in requests]
    outcomes = Outcomes(world, [made for _, made, _ in requests], items)
    assert outcomes.refusals == [None] * len(requests)


def test_each_command_of_the_contract_is_real(world):
    """The shell and Python examples, run as they stand but for the broker's address."""
    world.martlet().wait_ready()
    page = ROOT / "docs/contract.md"
    commands = [text for text in blocks(page, "sh") if "kcat -P" in text]
    programs = blocks(page, "python")
    assert len(commands) >= 2
    assert programs
    for command in commands:
        ready = command.replace("kafka:9092", world.kafka.bootstrap)
        subprocess.run(["bash", "-euo", "pipefail", "-c", ready], check=True, timeout=60)
    compiled = forms.compile_messages(world.directory)
    for program in programs:
        ready = program.replace("kafka:9092", world.kafka.bootstrap)
        subprocess.run([sys.executable, "-c", ready], check=True, timeout=60, cwd=compiled)
    results = [record.json for record in world.results.count(len(commands) + len(programs))]
    assert {result["status"] for result in results} == {"delivered"}
    assert [result["id"] for result in results].count("order-42-shipped") == len(commands)
    assert not world.dead_letters.poll(0.3)


@pytest.mark.parametrize("name", ["request", "request-headers"])
def test_the_examples_of_the_schemas_are_taken(world, name):
    world.martlet().wait_ready()
    described = read_schema(name)["examples"]
    if name == "request":
        records = [as_record(fields) for fields in described]
    else:
        records = [Outgoing(b"{}", headers=[(key, value.encode()) for key, value in one.items()]) for one in described]
    items = [len(fields.get("tokens", [1])) for fields in described]
    assert Outcomes(world, records, items).refusals == [None] * len(records)


# The AsyncAPI document.


def resolve(reference: str) -> Any:
    """What a reference of the document means; the text of a file that is no JSON."""
    file, _, pointer = reference.partition("#")
    if file.endswith(".proto"):
        return (ROOT / "schemas" / file).read_text()
    found: Any = read_schema(Path(file).stem) if file else ASYNCAPI
    for part in filter(None, pointer.split("/")):
        found = found[part]
    return found


def references(part: Any) -> list[str]:
    if isinstance(part, list):
        return [found for item in part for found in references(item)]
    if isinstance(part, dict):
        own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return own + [found for value in part.values() for found in references(value)]
    return []


def followed(part: Any) -> Any:
    return followed(resolve(part["$ref"])) if isinstance(part, dict) and set(part) == {"$ref"} else part


def validator(part: dict[str, Any]) -> Any:
    """For a schema of the document, multi-format or plain; references lead to the files and the document."""
    part = part.get("schema", part) if "schemaFormat" in part else part
    base = "file:///schemas/asyncapi.yaml"
    specification = referencing.jsonschema.DRAFT202012
    resources = [(base, specification.create_resource(ASYNCAPI))]
    resources += [
        (f"file:///schemas/{name}.json", specification.create_resource({**read_schema(name), "$id": ""}))
        for name in NAMES
    ]
    registry = referencing.Registry().with_resources(resources)
    if "$ref" in part:
        part = {"$ref": f"{base}{part['$ref']}"} if part["$ref"].startswith("#") else part
    described = {"$id": base + "/.." if "$ref" not in part else "file:///schemas/x", **part}
    return Validator(described, registry=registry)


def test_asyncapi_holds_together():
    """The rules of AsyncAPI 3 that such a document can break: kinds of objects, references, and who uses what."""
    assert ASYNCAPI["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= set(ASYNCAPI["info"])
    assert set(ASYNCAPI) <= {
        "asyncapi",
        "info",
        "defaultContentType",
        "servers",
        "channels",
        "operations",
        "components",
    }
    for reference in references(ASYNCAPI):
        assert resolve(reference) is not None, reference
    addresses = {channel["address"] for channel in ASYNCAPI["channels"].values()}
    assert addresses == {
        f"push.{name}" for name in ("requests", "results", "invalid-tokens", "dead-letters", "deferred")
    }
    used = set()
    for channel in ASYNCAPI["channels"].values():
        assert set(channel) <= {"address", "title", "description", "messages", "bindings"}
        used |= {message["$ref"].rpartition("/")[2] for message in channel["messages"].values()}
    assert used == set(ASYNCAPI["components"]["messages"])
    for operation in ASYNCAPI["operations"].values():
        assert set(operation) == {"action", "channel", "summary"}
        assert operation["action"] in {"send", "receive"}
        assert operation["channel"]["$ref"].startswith("#/channels/")
    for message in ASYNCAPI["components"]["messages"].values():
        assert set(message) <= {"name", "title", "contentType", "headers", "payload", "bindings", "examples"}
        assert message["examples"] if "proto" not in str(message["payload"]) else True
        for example in message.get("examples", []):
            assert set(example) <= {"name", "summary", "headers", "payload"}


def message_examples() -> list[tuple[str, dict[str, Any]]]:
    messages = ASYNCAPI["components"]["messages"]
    return [(name, example) for name, message in messages.items() for example in message.get("examples", [])]


@pytest.mark.parametrize(("name", "example"), message_examples())
def test_the_examples_of_asyncapi_fit_their_schemas(name, example):
    message = ASYNCAPI["components"]["messages"][name]
    validator(message["payload"]).validate(example["payload"])
    if "headers" in example:
        validator(message["headers"]).validate(example["headers"])
    # The schema must be able to refuse.
    if name not in ("deadLetter", "deferredRequest", "requestInHeaders"):
        assert not validator(message["payload"]).is_valid({})


def test_the_requests_of_asyncapi_are_taken(world):
    world.martlet().wait_ready()
    used = [message["$ref"].rpartition("/")[2] for message in ASYNCAPI["channels"]["requests"]["messages"].values()]
    shown = [example for name, example in message_examples() if name in used]
    assert len(shown) >= 6
    records = [
        Outgoing(
            compact(example["payload"]).encode(),
            headers=[(key, value.encode()) for key, value in example.get("headers", {}).items()],
        )
        for example in shown
    ]
    items = [len(example["payload"].get("tokens", [1])) for example in shown]
    assert Outcomes(world, records, items).refusals == [None] * len(records)
