"""Results and events in every form that `output` offers, read by other people's libraries."""

import random
import time
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.v1.event import CloudEvent
from google.protobuf import unknown_fields
from google.protobuf.json_format import MessageToDict

import forms
from apns_standin import Answer
from contract import schema
from kafka_io import Incoming, Outgoing
from payloads import nasty
from world import as_record, device_token, request

KEYS = {"result": "push.results", "invalid-token": "push.invalid-tokens"}
MESSAGES = {"result": "PushResult", "invalid-token": "InvalidTokenEvent"}


def run(world, **output: str) -> dict[str, list[Incoming]]:
    """Some requests with each ending; the records by kind, ordered by the token's number."""
    world.output = output
    world.martlet(attempts=1).wait_ready()
    world.server.answer(device_token(0), Answer(410, "Unregistered", timestamp=1_783_245_053_444))
    world.server.answer(device_token(1), Answer(400, "BadDeviceToken"))
    world.server.answer(device_token(2), Answer(503, "ServiceUnavailable"))
    fields = [request(device_token(number), id=f"call-{number} é") for number in range(4)]
    fields.append(request(device_token(4), id="call-4", priority=7))
    fields.append({**request(device_token(5), id=None), "push_type": "liveactivity"})
    fields.append({"app": "shop-ios", "channel": "Zm9v", "payload": {}, "expiration": 0, "id": "call-6"})
    fields.append({"app": "shop-ios", "tokens": ["aa", "bb"], "payload": {}, "id": "call-7"})
    extra = [("traceparent", b"00-1-2-01"), ("ce_traceparent", b"00-3-4-01")]
    records = [as_record(one, key=b"k%d" % number, headers=extra) for number, one in enumerate(fields)]
    made = forms.record(request(device_token(8), id="call-8"), "binary")
    assert made is not None
    records.append(Outgoing(made.value, b"k8", [*made.headers, *extra]))
    world.send(records)
    found = {"result": world.results.count(len(records) + 1), "invalid-token": world.events.count(2)}
    for record in found["result"] + found["invalid-token"]:
        assert record.header("traceparent") == b"00-1-2-01"
        names = [name for name, _ in record.headers]
        assert len(names) == len(set(names)), "what the request's value was is not said of this one"
    return found


def check_documents(kind: str, documents: list[dict[str, Any]]) -> None:
    """They are what the plain JSON form would say."""
    for document in documents:
        schema(kind, closed=True).validate(document)
    if kind == "result":
        statuses = [document["status"] for document in documents]
        assert sorted(statuses) == ["delivered"] * 6 + ["failed", "invalid"] + ["rejected"] * 2
        assert {document["source"]["index"] for document in documents} == {0, 1}
    else:
        assert {document["reason"] for document in documents} == {"Unregistered", "BadDeviceToken"}
        assert {document["unregistered_at"] for document in documents} == {1_783_245_053_444, None}


def document_of(kind: str, value: bytes) -> dict[str, Any]:
    """The JSON of a message: absent fields of the schema are null there, and 64-bit numbers are numbers."""
    message = getattr(forms.messages(), MESSAGES[kind]).FromString(value)
    assert message.SerializeToString(deterministic=True) == value, "as the library itself would write it"
    assert not [field for field in message.ListFields() if field[0].name == ""]
    made = MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    for field in message.DESCRIPTOR.fields:
        if field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_INT32) and field.name in made:
            made[field.name] = int(made[field.name])
        if field.name not in made and field.name != "message":
            made[field.name] = None
    made["source"]["offset"] = int(made["source"]["offset"])
    return made


def check_event(kind: str, record: Incoming, event: CloudEvent, document: dict[str, Any], source: str) -> None:
    """The attributes are those that the contract's page says."""
    origin = document["source"]
    place = f"{origin['topic']}/{origin['partition']}/{origin['offset']}/{origin['index']}"
    assert event.get_id() == f"{kind}:{place}"
    assert event.get_type() == f"martlet.push.{kind}"
    assert event.get_source() == source
    assert event.get_specversion() == "1.0"
    assert event.get_subject() == (document["id"] if kind == "result" else document["token"])
    ended = document["completed_at" if kind == "result" else "detected_at"]
    assert event.get_time() == datetime.fromtimestamp(ended / 1000, UTC)
    assert record.topic == KEYS[kind]
    if kind == "invalid-token":
        assert record.key == document["token"].encode()


@pytest.mark.parametrize("data_format", ["json", "protobuf"])
@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_cloud_events(world, mode, data_format):
    found = run(world, cloudEvents=mode, format=data_format, source="/push/eu")
    content = "application/json" if data_format == "json" else "application/x-protobuf"
    for kind, records in found.items():
        documents = []
        for record in records:
            wanted = "application/cloudevents+json" if mode == "structured" else content
            assert record.header("content-type") == wanted.encode()
            event = forms.event_of(record)
            assert event.get_datacontenttype() == content
            data = event.get_data()
            document = data if data_format == "json" else document_of(kind, forms.protobuf_of(event))
            assert isinstance(document, dict)
            check_event(kind, record, event, document, "/push/eu")
            documents.append(document)
        check_documents(kind, documents)
        assert len({forms.event_of(record).get_id() for record in records}) == len(records)


def test_protobuf(world):
    for kind, records in run(world, format="protobuf").items():
        assert all(record.header("content-type") == b"application/x-protobuf" for record in records)
        check_documents(kind, [document_of(kind, record.value) for record in records])


def test_plain_json_has_no_headers_of_its_own(world):
    for kind, records in run(world).items():
        check_documents(kind, [record.json for record in records])
        names = {name for record in records for name, _ in record.headers}
        assert names == {"traceparent"}


def test_payload_bytes_of_protobuf_are_untouched(world):
    """Payloads that a careless service changes, in the form that has them as bytes."""
    world.martlet().wait_ready()
    payloads = nasty(60)
    records = []
    for number, payload in enumerate(payloads):
        message = forms.messages().PushRequest(app="shop-ios", token=device_token(number), payload=payload)
        records.append(Outgoing(message.SerializeToString(), headers=forms.PROTOBUF))
    world.send(records)
    results = world.results.count(len(payloads))
    assert {record.json["status"] for record in results} == {"delivered"}
    bodies = {seen.token: seen.body for seen in world.server.seen}
    assert [bodies[device_token(number)] for number in range(len(payloads))] == payloads


def mutated(value: bytes, source: random.Random) -> bytes:
    """With some bytes changed, put in, taken out or doubled, or with the end cut off."""
    changed = bytearray(value)
    for _ in range(source.randrange(1, 3)):
        place = source.randrange(len(changed)) if changed else 0
        kind = source.randrange(5)
        if kind == 0 and changed:
            changed[place] = source.randrange(256)
        elif kind == 1:
            changed.insert(place, source.choice([0x00, 0x80, 0xFF, 0x0A, 0x22, source.randrange(256)]))
        elif kind == 2 and changed:
            del changed[place]
        elif kind == 3:
            changed[place:place] = changed[place : place + source.randrange(6)]
        else:
            del changed[place:]
    return bytes(changed)


def test_what_is_accepted_means_what_the_library_reads(world):
    """Broken messages: whatever the service sends, the Protobuf library reads from the same bytes, and strictly so."""
    world.martlet().wait_ready()
    source = random.Random(20_261_130)
    whole = forms.messages().PushRequest(
        app="shop-ios", token="ab12cd34", payload=b'{"a":1}', priority=5, expiration=1_790_000_000, collapse_id="c",
        push_type="alert",
    )  # fmt: skip
    values = [whole.SerializeToString()] + [mutated(whole.SerializeToString(), source) for _ in range(1500)]
    places = world.send([Outgoing(value, headers=forms.PROTOBUF) for value in values])
    answered: dict[tuple[int, int], dict[str, Any]] = {}

    def enough(_: object) -> bool:
        world.dead_letters.poll(0.05)
        for one in [record.json for record in world.results.records]:
            if one["status"] != "invalid":
                answered[one["source"]["partition"], one["source"]["offset"]] = one
        refused = {
            tuple(int(letter.header(f"martlet-source-{part}") or b"-1") for part in ("partition", "offset"))
            for letter in world.dead_letters.records
        }
        return refused | set(answered) >= set(places)

    world.results.until("an outcome for each", enough)
    sent = {seen.headers["apns-id"]: seen for seen in world.server.seen}
    accepted = 0
    for place, value in zip(places, values, strict=True):
        if place not in answered:
            continue
        accepted += 1
        message = forms.messages().PushRequest.FromString(value)
        assert not unknown_fields.UnknownFieldSet(message), value
        result = answered[place]
        assert (result["app"], result["push_type"]) == (message.app, message.push_type or "alert")
        if result["status"] == "expired":
            assert 0 < message.expiration < time.time()
            continue
        seen = sent[result["apns_id"]]
        assert result["token"] in ([message.token] if message.token else list(message.tokens)), value
        assert seen.body == message.payload
        assert seen.headers["apns-priority"] == str(message.priority or 10)
        assert seen.headers.get("apns-expiration") == (
            str(message.expiration) if message.HasField("expiration") else None
        )
        assert seen.headers.get("apns-collapse-id", "") == message.collapse_id
    assert 50 < accepted < 1400


def test_a_schema_registrys_serializer_is_understood(world):
    """What confluent-kafka's own serializer puts around a message; the registry itself is played."""
    world.martlet().wait_ready()
    message = forms.messages().PushRequest(
        app="shop-ios", token=device_token(1), payload=b"{}", id=str(uuid.uuid4()), expiration=0
    )
    for indexes in (b"\x00", b"\x02\x00"):
        world.send([Outgoing(b"\x00" + (100_042).to_bytes(4, "big") + indexes + message.SerializeToString())])
    world.send([Outgoing(b"\x00" + (7).to_bytes(4, "big") + as_record(request(device_token(2))).value)])
    results = world.results.count(3)
    assert {record.json["status"] for record in results} == {"delivered"}
