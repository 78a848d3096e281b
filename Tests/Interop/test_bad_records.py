"""Records that break the contract: each ends as documented, and the stream goes on."""

import json
import uuid
from dataclasses import dataclass

from apns_standin import Answer
from contract import check_result
from kafka_io import Headers, Outgoing
from waiting import until
from world import as_record, device_token, request


@dataclass(frozen=True)
class Bad:
    """A record, the rule that it breaks, the field that the message must name, and whether its id can be read."""

    name: str
    value: bytes
    rule: str | None
    field: str | None = None
    headers: Headers = ()
    has_id: bool = True


def broken(name: str, rule: str, field: str, /, drop: str | None = None, **fields) -> Bad:
    """A request in JSON that is right but for some fields."""
    made = request(device_token(1), id=f"bad-{name}", **fields)
    if drop:
        del made[drop]
    return Bad(name, json.dumps(made).encode(), rule, field, has_id=isinstance(made.get("id"), str) and rule != "BadId")


def raw(name: str, value: bytes, rule: str | None = "MalformedJSON", **options) -> Bad:
    options.setdefault("has_id", False)
    return Bad(name, value, rule, **options)


def in_headers(name: str, rule: str, field: str, value: bytes = b'{"aps":{}}', drop: str = "", **changes: bytes) -> Bad:
    headers = {"app": b"shop-ios", "token": device_token(1).encode(), "id": f"bad-{name}".encode()}
    headers.update({header.replace("_", "-"): content for header, content in changes.items()})
    headers.pop(drop, None)
    return Bad(name, value, rule, field, tuple(headers.items()))


GOOD = json.dumps(request(device_token(2), id="inside")).encode()


def bad_records() -> list[Bad]:
    return [
        raw("empty", b""),
        raw("blanks", b" \n\t"),
        raw("text", b"hello"),
        raw("binary", bytes(range(256)), "MalformedProtobuf"),
        raw("more binary", bytes(range(1, 256))),
        raw("array", b"[" + GOOD + b"]", "WrongType"),
        raw("string", b'"hello"', "WrongType"),
        raw("number", b"17", "WrongType"),
        raw("null in JSON", b"null", "WrongType"),
        raw("cut", GOOD[:-1]),
        raw("two documents", GOOD + GOOD),
        raw("text after it", GOOD + b" x"),
        raw("a comma too many", GOOD[:-1] + b",}"),
        raw("a comment", b"{/* */" + GOOD[1:]),
        raw("single quotes", GOOD.replace(b'"', b"'")),
        raw("a byte-order mark", b"\xef\xbb\xbf" + GOOD),
        raw("UTF-16", GOOD.decode().encode("utf-16")),
        raw("NaN", GOOD.replace(b'"Hello"', b"NaN")),
        raw("a leading zero", GOOD.replace(b'"Hello"', b"01")),
        raw("a bare control character", GOOD.replace(b"Hello", b"Hel\nlo")),
        raw("a bad escape", GOOD.replace(b"Hello", rb"\x41")),
        raw("invalid UTF-8 in the payload", GOOD.replace(b"Hello", b"\xff\xfe")),
        raw("an overlong form", GOOD.replace(b"Hello", b"\xc0\xaf")),
        raw("a bare surrogate in UTF-8", GOOD.replace(b"Hello", b"\xed\xa0\x80")),
        raw("beyond Unicode", GOOD.replace(b"Hello", b"\xf4\x90\x80\x80")),
        raw("one mebibyte of brackets", b"[" * 1_048_000),
        raw("one mebibyte of zeros", bytes(1_048_000), "MalformedProtobuf"),
        broken("no app", "MissingField", "app", drop="app"),
        broken("no token", "MissingField", "token", drop="token"),
        broken("no payload", "MissingField", "payload", drop="payload"),
        broken("app is a number", "WrongType", "app", app=7),
        broken("app is unknown", "UnknownApp", "app", app="nobody's"),
        broken("app is empty", "UnknownApp", "app", app=""),
        Bad(
            "token is a number",
            json.dumps({**request("aa", id="bad-token is a number"), "token": 17}).encode(),
            "WrongType",
            "token",
        ),
        *(
            Bad(f"token {word}", json.dumps(request(token, id=f"bad-token {word}")).encode(), "BadToken", "token")
            for word, token in {
                "empty": "",
                "odd": "abc",
                "not hex": "zz" * 32,
                "with blanks": "aa bb",
                "a path": "../../3/device/aa",
                "too long": "ab" * 101,
                "not ASCII": "١٢",
            }.items()
        ),
        broken("tokens empty", "BadToken", "tokens", drop="token", tokens=[]),
        broken("tokens too many", "TooManyTokens", "tokens", drop="token", tokens=["aa"] * 1001),
        broken("tokens is a string", "WrongType", "tokens", drop="token", tokens="aa"),
        broken("payload is an array", "BadPayload", "payload", payload=[]),
        broken("payload is a string", "BadPayload", "payload", payload='{"aps":{}}'),
        broken("payload is null", "MissingField", "payload", payload=None),
        broken("payload of 4097 bytes", "PayloadTooLarge", "payload", payload={"a": "x" * 4088}),
        broken("payload of one mebibyte", "PayloadTooLarge", "payload", payload={"a": "x" * 1_040_000}),
        broken("voip payload of 5121 bytes", "PayloadTooLarge", "payload", push_type="voip", payload={"a": "x" * 5112}),
        broken("push type is a number", "WrongType", "push_type", push_type=1),
        broken("push type unknown and no topic", "BadPushType", "push_type", push_type="brandnew"),
        broken("push type with a line", "BadPushType", "push_type", push_type="alert\r\nx: y"),
        broken("priority 7", "BadPriority", "priority", priority=7),
        broken("priority is a string", "WrongType", "priority", priority="10"),
        broken("priority is not whole", "BadPriority", "priority", priority=5.5),
        broken("expiration negative", "BadExpiration", "expiration", expiration=-1),
        broken("expiration in milliseconds", "BadExpiration", "expiration", expiration=1_790_000_000_000),
        broken("expiration is a date", "WrongType", "expiration", expiration="2026-07-05"),
        broken("collapse id of 66 bytes", "BadCollapseId", "collapse_id", collapse_id="é" * 33),
        broken("collapse id is a number", "WrongType", "collapse_id", collapse_id=42),
        broken("topic with a blank", "BadTopic", "topic", topic="com.example shop"),
        broken("topic is a number", "WrongType", "topic", topic=1),
        Bad("id is a number", GOOD.replace(b'"inside"', b"17"), "WrongType", "id", has_id=False),
        Bad("id of 129 bytes", GOOD.replace(b'"inside"', b'"' + b"i" * 129 + b'"'), "BadId", "id", has_id=False),
        Bad(
            "content type", GOOD, "UnsupportedContentType", "content-type", (("content-type", b"text/xml"),),
            has_id=False,
        ),
        in_headers("headers: no token", "MissingField", "token", drop="token"),
        in_headers("headers: app unknown", "UnknownApp", "app", app=b"nobody's"),
        in_headers("headers: bad token", "BadToken", "token", token=b"xyz"),
        in_headers("headers: priority", "BadPriority", "priority", apns_priority=b"ten"),
        in_headers("headers: expiration", "BadExpiration", "expiration", apns_expiration=b"soon"),
        in_headers("headers: payload an array", "BadPayload", "payload", value=b"[]"),
        in_headers("headers: payload no JSON", "MalformedJSON", "payload", value=b"hello"),
        in_headers("headers: payload empty", "MissingField", "payload", value=b""),
        in_headers("headers: payload too large", "PayloadTooLarge", "payload", value=b'{"a":"' + b"x" * 4089 + b'"}'),
    ]  # fmt: skip


def test_bad_records_end_as_documented_and_the_stream_goes_on(world):
    """Good requests stand between the bad records of one partition, so that each bad one could stop the stream."""
    world.topics["push.requests"] = 1
    bad = bad_records()
    martlet = world.martlet().wait_ready()
    records, good = [], []
    for number, one in enumerate(bad):
        records.append(Outgoing(one.value, key=b"bad-%d" % number, headers=one.headers))
        fields = request(device_token(1000 + number), id=f"good-{number}")
        good.append(fields["id"])
        records.append(as_record(fields))
    world.send(records)

    with_id = [f"bad-{one.name}" for one in bad if one.has_id]
    found = world.results.by_id(good + with_id, timeout=90)
    for identifier in good:
        assert [check_result(record)["status"] for record in found[identifier]] == ["delivered"], identifier

    for number, one in enumerate(bad):
        if not one.has_id:
            continue
        (record,) = found[f"bad-{one.name}"]
        result = check_result(record)
        assert result["status"] == "invalid", one.name
        assert record.key == b"bad-%d" % number, one.name
        assert result["source"]["offset"] == 2 * number, one.name
        text = json.dumps({name: value for name, value in result.items() if name not in ("id", "token", "app")})
        assert one.field in text, f"{one.name}: the message names the field: {text}"
        assert result.get("reason") == one.rule, f"{one.name}: {result}"

    letters = {letter.key: letter for letter in world.dead_letters.count(len(bad), timeout=60)}
    for number, one in enumerate(bad):
        letter = letters[b"bad-%d" % number]
        assert letter.value == one.value, one.name
        assert letter.headers[: len(one.headers)] == one.headers or set(one.headers) <= set(letter.headers), one.name
        added = [value for header, value in letter.headers if (header, value) not in one.headers]
        for fact in (b"push.requests", b"0", str(2 * number).encode()):
            assert fact in added, f"{one.name}: source topic, partition and offset are among {added}"
        if one.rule:
            assert any(one.rule.encode() in value for value in added if value), f"{one.name}: {one.rule} in {added}"

    assert martlet.running
    assert not world.events.poll(0.5)
    assert len(world.server.seen) == len(good), "nothing bad was sent"


def test_a_tombstone_is_counted_and_skipped(world):
    martlet = world.martlet().wait_ready()
    before = sum(value for name, value in martlet.metrics().items() if "tombstone" in name)
    world.send([Outgoing(None, key=b"k", partition=0), as_record(request(device_token(1), id="after"), partition=0)])
    world.results.by_id(["after"])

    def counted() -> bool:
        return sum(value for name, value in martlet.metrics().items() if "tombstone" in name) == before + 1

    until("the tombstone is counted", counted, 10)
    assert not world.dead_letters.poll(0.5)
    assert len(world.results.records) == 1


def test_the_last_of_two_equal_keys_counts(world):
    world.martlet().wait_ready()
    first, last = device_token(1), device_token(2)
    value = (
        b'{"token":"%b","app":"nobody","id":"one","payload":{"a":1},"payload":{"a":2},"id":"two",'
        b'"app":"shop-ios","token":"%b"}' % (first.encode(), last.encode())
    )
    world.send([Outgoing(value)])
    (record,) = world.results.count(1)
    result = check_result(record)
    assert (result["id"], result["token"], result["status"]) == ("two", last, "delivered")
    assert world.server.seen[0].body == b'{"a":2}'


def test_unknown_fields_are_ignored(world):
    world.martlet().wait_ready()
    fields = request(device_token(1), sound="x", nested={"app": "other"}, null=None)
    world.send([as_record(fields)])
    (record,) = world.results.count(1)
    assert check_result(record)["status"] == "delivered"


def test_the_largest_payloads_pass(world):
    world.martlet().wait_ready()
    sizes = {"alert": 4096, "voip": 5120}
    payloads = {kind: b'{"a":"' + b"x" * (size - 8) + b'"}' for kind, size in sizes.items()}
    world.send(
        Outgoing(
            payload,
            headers=[("app", b"shop-ios"), ("token", device_token(size).encode()), ("apns-push-type", kind.encode())],
        )
        for (kind, payload), size in zip(payloads.items(), sizes.values(), strict=True)
    )
    records = world.results.count(2)
    assert {check_result(record)["status"] for record in records} == {"delivered"}
    assert {len(seen.body) for seen in world.server.seen} == {4096, 5120}


def test_a_refusal_by_the_server_stands_alone(world):
    """One device's refusals among a hundred others."""
    world.martlet().wait_ready()
    world.server.answer(device_token(50), Answer(400, "BadCollapseId"))
    fields = [request(device_token(number), id=str(uuid.uuid4())) for number in range(100)]
    world.send([as_record(one) for one in fields])
    records = world.results.count(100)
    statuses = {record.json["token"]: check_result(record)["status"] for record in records}
    assert statuses.pop(device_token(50)) == "rejected"
    assert set(statuses.values()) == {"delivered"}
    assert not world.events.poll(0.3)
