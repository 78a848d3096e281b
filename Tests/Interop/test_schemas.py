"""The schemas, held against what the service accepts and emits, in both directions."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema
import pytest

import forms
from apns_standin import Answer
from contract import check_event, check_result, compact, is_version_5, read_schema, schema
from contract_cases import APP, CHANNEL, TYPES, cases
from kafka_io import Outgoing
from processes import ROOT
from world import as_record, device_token, request

NAMES = ["request", "request-headers", "result", "invalid-token", "dead-letter-headers", "deferred-headers"]


class Outcomes:
    """What became of each record: whether all of it was accepted, and the words of the refusal."""

    def __init__(self, world, records: Sequence[Outgoing], items: Sequence[int]):
        places = world.send(records)
        expected = dict(zip(places, items, strict=True))
        results: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
        refused: dict[tuple[int, int], str] = {}
        read = [0, 0]

        def enough(_: object) -> bool:
            world.dead_letters.poll(0.05)
            for record in world.results.records[read[0] :]:
                result = record.json
                results[result["source"]["partition"], result["source"]["offset"]].append(result)
            for letter in world.dead_letters.records[read[1] :]:
                headers = dead_letter_headers(letter)
                place = int(headers["martlet-source-partition"]), int(headers["martlet-source-offset"])
                refused[place] = f"{headers['martlet-error-rule']}: {headers['martlet-error']}"
            read[:] = [len(world.results.records), len(world.dead_letters.records)]
            return all(place in refused or len(results[place]) >= count for place, count in expected.items())

        world.results.until("an outcome for each record", enough, timeout=120)
        self.refusals = []
        for place in places:
            faults = [result["message"] for result in results[place] if result["status"] == "invalid"]
            self.refusals.append(refused.get(place) or next(iter(faults), None))


def dead_letter_headers(record) -> dict[str, str]:
    return {name: value.decode() for name, value in record.headers if name.startswith("martlet-")}


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_schemas_and_their_examples_fit(name):
    described = read_schema(name)
    jsonschema.Draft202012Validator.check_schema(described)
    assert described["examples"]
    for example in described["examples"]:
        schema(name, closed=True).validate(example)
    # Each field says what it is, in people's words or by its type and name alone.
    assert all(
        "description" in field or "type" in field or "$ref" in field for field in described["properties"].values()
    )


@pytest.mark.parametrize("form", forms.FORMS)
def test_what_the_schema_accepts_the_service_accepts_and_nothing_else(world, form):
    """Thousands of requests on both sides of every bound, in each form; JSON's schema judges the fields of all."""
    world.martlet().wait_ready()
    chosen = [(fields, made) for fields in cases(mixtures=900) if (made := forms.record(fields, form)) is not None]
    assert len(chosen) > 500
    judged = [schema("request", APP).is_valid(fields) for fields, _ in chosen]
    assert 0.15 < sum(judged) / len(judged) < 0.85, "both sides are there"
    items = [len(fields["tokens"]) if isinstance(fields.get("tokens"), list) else 1 for fields, _ in chosen]
    outcomes = Outcomes(world, [made for _, made in chosen], items)
    wrong = [
        f"the schema {'accepts' if good else 'refuses'} {compact(fields)[:300]}; the service: {refusal or 'accepted'}"
        for (fields, _), good, refusal in zip(chosen, judged, outcomes.refusals, strict=True)
        if good != (refusal is None)
    ]
    assert not wrong, f"{len(wrong)} of {len(chosen)} differ:\n" + "\n".join(wrong[:20])
    if form == "headers":
        check_headers_schema(chosen, judged)


def check_headers_schema(chosen: Sequence[tuple[Mapping[str, Any], Outgoing]], judged: Sequence[bool]) -> None:
    """The schema of the headers, together with the payload's bounds, says the same as that of the JSON form."""
    for (fields, made), good in zip(chosen, judged, strict=True):
        headers = {name: value.decode() for name, value in made.headers}
        limit = 5120 if fields.get("push_type") == "voip" or "channel" in fields else 4096
        payload = isinstance(fields.get("payload"), dict) and len(made.value or b"") <= limit
        assert (schema("request-headers", APP).is_valid(headers) and payload) == good, headers


def test_what_the_configuration_allows_is_marked_in_the_schema(world):
    """A few requests are good for some services only: the schema refuses them where it says `x-configured`."""
    world.app("shop-ios", pushTypes={"newtype": {"topicSuffix": ".new"}}, defaultExpiration="1h")
    world.app("odd-ios", bundle="com.example.odd.voip")
    world.martlet().wait_ready()
    allowed = [
        {"app": "shop-ios", "token": "ab", "payload": {}, "push_type": "newtype"},
        {"app": "shop-ios", "channel": CHANNEL, "payload": {}},
        {"app": "odd-ios", "token": "ab", "payload": {}, "topic": "com.example.odd.voip"},
    ]
    apps = ("shop-ios", "odd-ios")
    for fields in allowed:
        assert not schema("request", *apps).is_valid(fields), fields
        schema("request", *apps, lenient=True).validate(fields)
    assert Outcomes(world, [as_record(fields) for fields in allowed], [1, 1, 1]).refusals == [None, None, None]


def test_the_header_form_is_strict_about_numbers(world):
    """JSON may write 10 as 10.0; a header has decimal digits."""
    world.martlet().wait_ready()
    texts = ["10", "10.0", "1e1", "010", "+10", " 10", "0xa", "", "ten"]
    base = [("app", b"shop-ios"), ("token", b"ab")]
    headers = [[*base, ("apns-priority", text.encode())] for text in texts]
    headers += [[*base, ("apns-expiration", text.encode())] for text in ["0", "00", "-0", "1790000000", "1.79e9"]]
    good = [schema("request-headers").is_valid({name: value.decode() for name, value in one}) for one in headers]
    assert sum(good) == 3
    outcomes = Outcomes(world, [Outgoing(b"{}", headers=one) for one in headers], [1] * len(headers))
    assert [refusal is None for refusal in outcomes.refusals] == good


def varied_requests(world) -> list[Outgoing]:
    """Requests that end in each way; the service must have two attempts at most."""
    endings = {
        "unregistered": Answer(410, "Unregistered", timestamp=1_783_245_053_444),
        "bad token": Answer(400, "BadDeviceToken"),
        "expired token": Answer(410, "ExpiredToken"),
        "other topic": Answer(400, "DeviceTokenNotForTopic"),
        "refused": Answer(400, "BadMessageId"),
        "new word": Answer(418, "TeaPot"),
        "no words": Answer(404),
        "no JSON": Answer(413, body=b"<html>"),
        "server error": Answer(503, "ServiceUnavailable"),
        "reset": Answer(reset=2),
        "later": Answer(429, "TooManyRequests", headers=(("retry-after", "120"),)),
        "console": Answer(headers=(("apns-unique-id", "c6a1b2c3-0000-4000-8000-000000000001"),)),
    }
    fields = []
    for number, (name, answer) in enumerate(endings.items()):
        world.server.answer(device_token(number), answer)
        fields.append(request(device_token(number), id=name))
    fields += [request(device_token(100 + number), id=f"{kind} é", push_type=kind) for number, kind in enumerate(TYPES)]
    fields += [
        request(device_token(120), id=None),
        request(device_token(121), expiration=1_000_000_000),
        request(device_token(122), push_type="brandnew", topic="com.example.new"),
        request(device_token(123), priority=7),
        request("xyz", id='quote"and\\'),
        {"app": APP, "tokens": [device_token(124), "xyz", device_token(125)], "payload": {}, "id": "batch"},
        {"app": APP, "channel": CHANNEL, "payload": {}, "expiration": 0, "id": "broadcast"},
        {"app": APP, "channel": CHANNEL, "token": "ab", "payload": {}, "expiration": 0, "id": "broadcast and push"},
        {"id": "nothing else"},
    ]
    records = [as_record(one, key=b"k%d" % number) for number, one in enumerate(fields)]
    for form in forms.FORMS[1:]:
        made = forms.record(request(device_token(130), id=f"as {form}"), form)
        assert made is not None
        records.append(made)
    return [*records, Outgoing(b"not JSON", key=b"\xff\x00"), Outgoing(b"\0\0\0\0\0\0\x99")]


def test_everything_that_is_emitted_fits_its_schema(world):
    martlet = world.martlet(attempts=2, retryBackoff={"initial": "10ms", "max": "20ms"}).wait_ready()
    records = varied_requests(world)
    world.send(records)
    parked = world.reader("push.deferred").count(1)
    world.events.count(4)
    world.dead_letters.count(6)
    # One is parked, two have neither id nor result, and the batch has three.
    results = world.results.count(len(records) - 3 + 2)
    martlet.terminate()

    statuses = Counter(check_result(record)["status"] for record in results)
    assert set(statuses) == {"delivered", "rejected", "expired", "failed", "invalid"}, statuses
    assert {check_event(record)["reason"] for record in world.events.records} == {
        "Unregistered", "BadDeviceToken", "ExpiredToken", "DeviceTokenNotForTopic",
    }  # fmt: skip
    rules = set()
    for letter in world.dead_letters.records:
        headers = dead_letter_headers(letter)
        schema("dead-letter-headers", closed=True).validate(headers)
        rules.add(headers["martlet-error-rule"])
    assert rules >= {"BadPriority", "BadToken", "BadChannel", "MalformedJSON", "MalformedProtobuf", "MissingField"}
    headers = {name: value.decode() for name, value in parked[0].headers}
    schema("deferred-headers", closed=True).validate(headers)
    assert headers["martlet-attempts"] == "1"
    ids = {record.json["id"] for record in results}
    assert {f"as {form}" for form in forms.FORMS[1:]} <= ids
    assert sum(is_version_5(identifier) for identifier in ids) == 1, "the request without an id"


def test_every_rule_and_every_word_of_ours_is_documented():
    """The contract's page has every rule that a request can break, and every reason that is not Apple's."""
    page = (ROOT / "docs/contract.md").read_text()
    rules = re.findall(r'case \w+ = "(\w+)"', (ROOT / "Sources/Delivery/InvalidRule.swift").read_text())
    assert len(rules) > 15
    writer = (ROOT / "Sources/Delivery/RecordWriter.swift").read_text()
    words = re.findall(r'case \.\w+: "(\w+)"', writer[writer.index("extension SendFailure") :])
    assert len(words) >= 7
    assert [word for word in [*rules, *words, "RequestTimeout"] if f"`{word}`" not in page] == []


def test_schemas_name_the_same_fields_in_every_language():
    """JSON Schema and Protobuf describe the same records."""
    for name, message in {
        "request": "PushRequest",
        "result": "PushResult",
        "invalid-token": "InvalidTokenEvent",
    }.items():
        described = getattr(forms.messages(), message).DESCRIPTOR
        assert {field.name for field in described.fields} == set(read_schema(name)["properties"]), name
    source = forms.messages().Source.DESCRIPTOR
    assert {field.name for field in source.fields} == set(read_schema("result")["$defs"]["source"]["properties"])
    assert json.dumps(read_schema("result")["$defs"]) == json.dumps(read_schema("invalid-token")["$defs"])
