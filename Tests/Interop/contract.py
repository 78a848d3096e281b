"""What the contract says of the records that the service writes."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import jsonschema
import jsonschema.protocols

from apns_standin import CANONICAL_UUID
from kafka_io import Incoming
from processes import ROOT

STATUSES = {"delivered", "rejected", "expired", "failed", "invalid"}
EVENT_REASONS = {"Unregistered", "ExpiredToken", "BadDeviceToken", "DeviceTokenNotForTopic"}
#: The fields of a result for a request that was sent.
RESULT_FIELDS = {
    "id", "app", "token", "channel", "status", "http_status", "apns_id", "topic", "environment", "push_type",
    "attempts", "requested_at", "completed_at", "source",
}  # fmt: skip
EVENT_FIELDS = {
    "token", "app", "topic", "environment", "reason", "suspect", "unregistered_at", "detected_at", "id", "source",
}  # fmt: skip
#: Times are in milliseconds; a test is over long before this many have passed.
A_DAY = 86_400_000


def _max_bytes(_: Any, limit: int, value: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    """`x-maxBytes`: of a text its UTF-8, of anything else its JSON as `compact` writes it."""
    encoded = (value if isinstance(value, str) else compact(value)).encode(errors="surrogatepass")
    if value is not None and len(encoded) > limit:
        yield jsonschema.ValidationError(f"{len(encoded)} bytes are more than {limit}")


Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"x-maxBytes": _max_bytes})


def compact(document: Any) -> str:
    """The JSON that tests send, so that bytes can be counted."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def read_schema(name: str) -> dict[str, Any]:
    """The file of `schemas`, as it stands."""
    return json.loads((ROOT / "schemas" / f"{name}.json").read_text())


def _walk(part: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    if isinstance(part, list):
        return [_walk(item, change) for item in part]
    if isinstance(part, dict):
        return change({key: _walk(value, change) for key, value in part.items()})
    return part


@cache
def schema(name: str, *apps: str, closed: bool = False, lenient: bool = False) -> jsonschema.protocols.Validator:
    """A validator that also counts bytes.

    `apps`: the names that the service knows. `closed`: refuses fields that the schema does not list. `lenient`: allows
    what the service's configuration may allow.
    """

    def change(part: dict[str, Any]) -> Any:
        if part.get("x-configured") == "apps" and apps:
            return {**part, "enum": list(apps)}
        if lenient and part.get("x-configured", "apps") != "apps":
            return True
        return part

    described = _walk(read_schema(name), change)
    if closed:
        described["unevaluatedProperties"] = False
        if "source" in described.get("$defs", {}):
            described["$defs"]["source"]["unevaluatedProperties"] = False
    Validator.check_schema(described)
    return Validator(described)


def check_source(source: Mapping[str, Any]) -> None:
    assert set(source) == {"topic", "partition", "offset", "index"}, source
    assert isinstance(source["topic"], str)
    assert all(isinstance(source[name], int) and source[name] >= 0 for name in ("partition", "offset", "index"))


def _recent(milliseconds: Any) -> bool:
    return isinstance(milliseconds, int) and abs(milliseconds - time.time() * 1000) < A_DAY


def check_result(record: Incoming, against_schema: bool = True) -> dict[str, Any]:
    """The rules that hold for every result; the result itself. The schema takes its time: not for thousands."""
    result = record.json
    assert result["status"] in STATUSES, result
    assert record.key, "a result has a key"
    assert isinstance(result["completed_at"], int), result
    assert _recent(result["completed_at"]), result
    check_source(result["source"])
    if result["status"] != "invalid":
        assert set(result) >= RESULT_FIELDS - {"http_status"}, RESULT_FIELDS - set(result)
        assert CANONICAL_UUID.fullmatch(result["apns_id"]), result
        assert result["environment"] in {"production", "sandbox"}
        assert isinstance(result["attempts"], int)
        assert _recent(result["requested_at"]), result
        assert result["completed_at"] >= result["requested_at"] - 1000, result
    if result["status"] == "delivered":
        assert result["http_status"] == 200, result
        assert result.get("reason") is None, result
        assert result["attempts"] >= 1, result
    if against_schema:
        schema("result", closed=True).validate(result)
    return result


def check_event(record: Incoming) -> dict[str, Any]:
    """The rules that hold for every invalid-token event; the event itself."""
    event = record.json
    assert set(event) >= EVENT_FIELDS, EVENT_FIELDS - set(event)
    assert record.key == event["token"].encode(), "keyed by the token, for compaction"
    assert event["reason"] in EVENT_REASONS, event
    assert isinstance(event["suspect"], bool), event
    assert event["unregistered_at"] is None or isinstance(event["unregistered_at"], int), event
    assert _recent(event["detected_at"]), event
    check_source(event["source"])
    schema("invalid-token", closed=True).validate(event)
    return event


def is_version_5(identifier: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", identifier) is not None
