"""The payload's bytes arrive as they stood in the record."""

import json

from contract import check_result
from kafka_io import Outgoing
from payloads import nasty
from world import device_token


def as_json(number: int, payload: bytes) -> Outgoing:
    """The JSON form; the place of `payload` among the fields varies."""
    others = [b'"app":"shop-ios"', b'"token":"%b"' % device_token(number).encode(), b'"id":"json-%d"' % number]
    others.insert(number % 4, b'"payload":' + payload)
    return Outgoing(b"{" + (b"," if number % 3 else b" ,\n").join(others) + b"}")


def as_headers(number: int, payload: bytes) -> Outgoing:
    token = device_token(1_000_000 + number)
    headers = [("app", b"shop-ios"), ("token", token.encode()), ("id", b"headers-%d" % number)]
    return Outgoing(payload, headers=headers)


def test_nasty_payloads_arrive_unchanged_in_both_forms(world):
    payloads = nasty()
    assert len(payloads) >= 200
    for payload in payloads:
        assert isinstance(json.loads(payload), dict), payload
    world.martlet().wait_ready()
    world.send(form(number, payload) for form in (as_json, as_headers) for number, payload in enumerate(payloads))

    wanted = [f"{form}-{number}" for form in ("json", "headers") for number in range(len(payloads))]
    found = world.results.by_id(wanted, timeout=60)
    refused = []
    for identifier in wanted:
        assert len(found[identifier]) == 1, identifier
        result = check_result(found[identifier][0])
        if result["status"] != "delivered":
            refused.append((result, payloads[int(identifier.rpartition("-")[2])]))
    assert not refused, refused[:5]

    arrived = {seen.token: seen.body for seen in world.server.seen}
    changed = []
    for number, payload in enumerate(payloads):
        for token in (device_token(number), device_token(1_000_000 + number)):
            if arrived[token] != payload:
                changed.append((payload, arrived[token]))
    assert not changed, changed[:5]
    assert len(arrived) == 2 * len(payloads)
    assert not world.dead_letters.poll(0.5)
