"""A request's fields as a record, in each of the forms that the service reads."""

import base64
import importlib
import json
import sys
import tempfile
import uuid
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from cloudevents.core.bindings import kafka as binding
from cloudevents.core.v1.event import CloudEvent
from grpc_tools import protoc

from contract import compact
from kafka_io import Incoming, Outgoing
from processes import ROOT

#: Names of the header form; the others are those of JSON.
HEADERS = {
    "push_type": "apns-push-type", "priority": "apns-priority", "expiration": "apns-expiration",
    "collapse_id": "apns-collapse-id", "topic": "apns-topic", "channel": "apns-channel-id",
}  # fmt: skip
NUMBERS = {"priority", "expiration"}
PROTOBUF = [("content-type", b"application/x-protobuf")]
FORMS = ["json", "headers", "protobuf", "framed", "structured", "binary", "base64"]


def compile_messages(directory: Path) -> Path:
    """Puts the module `martlet_pb2` of schemas/martlet.proto into the directory."""
    schemas = ROOT / "schemas"
    status = protoc.main(["protoc", f"-I{schemas}", f"--python_out={directory}", str(schemas / "martlet.proto")])
    assert status == 0
    return directory


@cache
def messages() -> ModuleType:
    """The classes of schemas/martlet.proto, compiled by protoc."""
    with tempfile.TemporaryDirectory() as directory:
        compile_messages(Path(directory))
        sys.path.insert(0, directory)
        try:
            return importlib.import_module("martlet_pb2")
        finally:
            sys.path.remove(directory)


def is_text(value: Any) -> bool:
    return isinstance(value, str) and not any(0xD800 <= ord(letter) < 0xE000 for letter in value)


def as_headers(fields: Mapping[str, Any]) -> Outgoing | None:
    """`None` if the header form cannot say it: batches, null, values of other types."""
    headers = []
    for name, value in fields.items():
        if name == "payload":
            continue
        if name in NUMBERS and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        elif name in NUMBERS or name == "tokens" or not is_text(value):
            return None
        headers.append((HEADERS.get(name, name), value.encode()))
    if "app" not in fields:
        return None
    payload = compact(fields["payload"]).encode() if "payload" in fields else b""
    return Outgoing(payload, headers=headers)


def as_message(fields: Mapping[str, Any]) -> Any | None:
    """A `PushRequest`; `None` if it cannot say it: null, values of other types, numbers that do not fit."""
    message = messages().PushRequest()
    for name, value in fields.items():
        if name == "payload":
            message.payload = compact(value).encode()
        elif name == "tokens":
            # A field that repeats has no difference between none and not there.
            if not isinstance(value, list) or not value or not all(is_text(item) for item in value):
                return None
            message.tokens.extend(value)
        elif name in NUMBERS:
            bits = 32 if name == "priority" else 63
            if not isinstance(value, int) or isinstance(value, bool) or not -(value < 0) <= value >> bits <= 0:
                return None
            if value < 0 and name == "priority":
                return None
            setattr(message, name, value)
        elif is_text(value):
            setattr(message, name, value)
        else:
            return None
    return message


def as_event(data: Any, content_type: str = "application/json") -> CloudEvent:
    attributes = {
        "id": str(uuid.uuid4()), "source": "/tests", "type": "com.example.push", "specversion": "1.0",
        "datacontenttype": content_type,
    }  # fmt: skip
    return CloudEvent(attributes, data)


def from_binding(message: binding.KafkaMessage) -> Outgoing:
    return Outgoing(message.value, headers=list(message.headers.items()))


def record(fields: Mapping[str, Any], form: str) -> Outgoing | None:
    """The request in that form; `None` if the form cannot say it."""
    if form == "json":
        return Outgoing(compact(fields).encode())
    if form == "headers":
        return as_headers(fields)
    if form == "structured":
        # The library writes JSON its own way, with escapes and blanks: payloads near a bound would not stay there.
        if len(json.dumps(fields.get("payload"))) > 4000:
            return None
        return from_binding(binding.to_structured_event(as_event(dict(fields))))
    if form == "binary":
        return from_binding(binding.to_binary_event(as_event(compact(fields).encode())))
    message = as_message(fields)
    if message is None:
        return None
    value = message.SerializeToString()
    if form == "protobuf":
        return Outgoing(value, headers=PROTOBUF)
    if form == "framed":
        return Outgoing(b"\0\0\0\x30\x39\0" + value)
    assert form == "base64"
    return from_binding(binding.to_structured_event(as_event(value, "application/x-protobuf")))


def event_of(record: Incoming) -> CloudEvent:
    """What the CloudEvents library makes of a record; content types are told apart by its own rules."""
    headers = {name: value for name, value in record.headers if value is not None}
    return binding.from_kafka_event(binding.KafkaMessage(headers, record.key, record.value))


def protobuf_of(event: CloudEvent) -> bytes:
    data = event.get_data()
    return data if isinstance(data, bytes) else base64.b64decode(data)
