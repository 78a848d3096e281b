"""Requests of producers that share no code with the service, and what is published for them."""

import json
import subprocess
import uuid

from apns_standin import Answer
from contract import check_event, check_result, is_version_5
from kafka_io import Outgoing, produce, produce_with_aiokafka
from waiting import until
from world import as_record, device_token, request

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_every_codec_of_both_clients(world):
    """Each client with each codec: 20 requests, 20 results, nothing else."""
    world.martlet().wait_ready()
    expected = {}
    for client, send in (("confluent", produce), ("aiokafka", produce_with_aiokafka)):
        for codec in CODECS:
            fields = [request(device_token(len(expected) + number)) for number in range(20)]
            places = send(world.kafka.bootstrap, "push.requests", [as_record(one) for one in fields], codec)
            for one, place in zip(fields, places, strict=True):
                expected[one["id"]] = (one, place, f"{client} {codec}")

    found = world.results.by_id(expected)
    assert set(found) == set(expected)
    for identifier, (sent, (partition, offset), case) in expected.items():
        assert len(found[identifier]) == 1, case
        result = check_result(found[identifier][0])
        assert result["status"] == "delivered", case
        assert result["token"] == sent["token"]
        assert result["source"] == {"topic": "push.requests", "partition": partition, "offset": offset, "index": 0}
    assert len(world.server.seen) == len(expected)
    assert not world.server.violations
    assert not world.dead_letters.poll(0.5)


def test_requests_of_kcat(world):
    """The tool that people try things with: JSON lines with keys, a header for all of them."""
    world.martlet().wait_ready()
    fields = [request(device_token(number)) for number in range(10)]
    lines = "".join(f"user-{number}|{json.dumps(one)}\n" for number, one in enumerate(fields))
    command = ["kcat", "-P", "-b", world.kafka.bootstrap, "-t", "push.requests", "-K", "|", "-H", "origin=kcat"]
    subprocess.run(command, input=lines, text=True, check=True, timeout=30)
    found = world.results.by_id([one["id"] for one in fields])
    for number, one in enumerate(fields):
        (record,) = found[one["id"]]
        assert check_result(record)["status"] == "delivered"
        assert record.key == b"user-%d" % number
        assert record.header("origin") == b"kcat"


def test_the_result_of_a_delivered_request(world):
    world.martlet().wait_ready()
    identifier = "5F0C6E5A-7C0E-4F0B-9E6D-0123456789AB"
    token = "AbCd" * 16
    world.server.answer(
        token, Answer(capitals=True, headers=(("apns-unique-id", "c6a1b2c3-0000-4000-8000-000000000001"),))
    )
    fields = request(token, id=identifier, priority=5, expiration=1_900_000_000, collapse_id="order-42")
    world.send(
        [as_record(fields, key=b"user-7", headers=[("traceparent", TRACE), ("odd", b"\x00\xff"), ("none", None)])]
    )

    (record,) = world.results.count(1)
    result = check_result(record)
    assert record.key == b"user-7"
    assert record.header("traceparent") == TRACE
    assert record.header("odd") == b"\x00\xff"
    assert ("none", None) in record.headers
    assert result["id"] == identifier, "the caller's id, as it was given"
    assert result["token"] == token, "the token, as it was given"
    assert result["apns_id"] == identifier.lower()
    assert result["apns_unique_id"] == "c6a1b2c3-0000-4000-8000-000000000001"
    assert (result["topic"], result["environment"], result["push_type"]) == ("com.example.shop", "production", "alert")
    assert result["attempts"] == 1

    (seen,) = world.server.seen
    assert seen.headers["apns-id"] == identifier.lower()
    assert seen.headers["apns-priority"] == "5"
    assert seen.headers["apns-expiration"] == "1900000000"
    assert seen.headers["apns-collapse-id"] == "order-42"
    assert seen.headers["apns-push-type"] == "alert"
    assert seen.path.lower() == f"/3/device/{token.lower()}"


def test_an_invalid_token_event(world):
    world.martlet().wait_ready()
    token = "0aB1" * 20
    world.server.answer(token, Answer(410, "Unregistered", timestamp=1_783_245_053_444))
    fields = request(token)
    ((partition, offset),) = world.send([as_record(fields, key=b"user-7", headers=[("traceparent", TRACE)])])

    (record,) = world.events.count(1)
    event = check_event(record)
    assert record.key == token.encode()
    assert record.header("traceparent") == TRACE
    assert event["token"] == token
    assert event["reason"] == "Unregistered"
    assert event["unregistered_at"] == 1_783_245_053_444
    assert (event["id"], event["app"]) == (fields["id"], "shop-ios")
    assert (event["topic"], event["environment"]) == ("com.example.shop", "production")
    assert event["source"] == {"topic": "push.requests", "partition": partition, "offset": offset, "index": 0}

    (record,) = world.results.count(1)
    result = check_result(record)
    assert (result["status"], result["http_status"], result["reason"]) == ("rejected", 410, "Unregistered")


def test_the_header_form_says_the_same_as_the_json_form(world):
    world.martlet().wait_ready()
    token, payload = device_token(5), b'{"aps":{"alert":"Hi"}}'
    headers = [
        ("app", b"shop-ios"), ("token", token.encode()), ("id", b"my-own-id"), ("apns-push-type", b"background"),
        ("apns-expiration", b"0"), ("apns-collapse-id", "é".encode() * 32), ("traceparent", TRACE),
    ]  # fmt: skip
    world.send([Outgoing(payload, headers=headers)])
    (record,) = world.results.count(1)
    result = check_result(record)
    assert (result["status"], result["id"], result["push_type"]) == ("delivered", "my-own-id", "background")
    assert record.key == b"my-own-id", "no key in the request: the id"
    assert record.header("traceparent") == TRACE
    (seen,) = world.server.seen
    assert seen.body == payload
    assert seen.headers["apns-priority"] == "5", "the default of a background push"
    assert seen.headers["apns-expiration"] == "0"
    assert is_version_5(seen.headers["apns-id"])


def test_apns_ids_are_given_or_derived(world):
    """A UUID is sent as it is; from anything else, and from nothing, the same version-5 UUID is derived each time."""
    world.martlet().wait_ready()
    given = str(uuid.uuid4())
    cases = [given, given.upper(), "order-42", "order-42", "order-43", None, None]
    fields = [request(device_token(number), id=identifier) for number, identifier in enumerate(cases)]
    world.send([as_record(one) for one in fields])
    records = world.results.count(len(cases))
    by_token = {record.json["token"]: check_result(record) for record in records}
    sent = {seen.token: seen.headers["apns-id"] for seen in world.server.seen}
    identifiers = [sent[device_token(number)] for number in range(len(cases))]
    assert all(by_token[token]["apns_id"] == identifier for token, identifier in sent.items())
    assert identifiers[0] == identifiers[1] == given
    assert identifiers[2] == identifiers[3]
    assert all(is_version_5(identifier) for identifier in identifiers[2:])
    assert len(set(identifiers)) == 5, "order-42, order-43 and two requests without an id all differ"


def test_a_batch_of_tokens_gets_a_result_each(world):
    world.martlet().wait_ready()
    tokens = [device_token(number) for number in range(50)]
    world.server.answer(tokens[7], Answer(410, "Unregistered", timestamp=1))
    fields = {"id": str(uuid.uuid4()), "app": "shop-ios", "tokens": tokens, "payload": {"aps": {"alert": "All"}}}
    world.send([as_record(fields)])
    records = world.results.count(50)
    results = sorted((check_result(record) for record in records), key=lambda result: result["source"]["index"])
    assert [result["token"] for result in results] == tokens
    assert [result["source"]["index"] for result in results] == list(range(50))
    assert [result["status"] for result in results].count("rejected") == 1
    assert results[7]["status"] == "rejected"
    assert {result["id"] for result in results} == {fields["id"]}
    assert len({result["apns_id"] for result in results}) == 50, "each notification has an apns-id of its own"
    assert len(world.events.count(1)) == 1


def test_tokens_of_any_even_length(world):
    world.martlet().wait_ready()
    tokens = ["f" * digits for digits in (2, 64, 108, 160, 200)] + ["AbCdEf"]
    world.send([as_record(request(token)) for token in tokens])
    records = world.results.count(len(tokens))
    assert {check_result(record)["status"] for record in records} == {"delivered"}
    assert {record.json["token"] for record in records} == set(tokens)
    assert {seen.token.lower() for seen in world.server.seen} == {token.lower() for token in tokens}


def test_topics_follow_the_push_type(world):
    suffixes = {
        "alert": "", "background": "", "voip": ".voip", "location": ".location-query", "complication": ".complication",
        "fileprovider": ".pushkit.fileprovider", "liveactivity": ".push-type.liveactivity", "pushtotalk": ".voip-ptt",
        "widgets": ".push-type.widgets", "controls": ".push-type.controls",
    }  # fmt: skip
    world.martlet().wait_ready()
    fields = [request(device_token(number), push_type=kind) for number, kind in enumerate(suffixes)]
    fields.append(request(device_token(99), push_type="mdm", topic="com.apple.mgmt.External.1234"))
    fields.append(request(device_token(98), topic="com.example.other"))
    world.send([as_record(one) for one in fields])
    world.results.count(len(fields))
    topics = {seen.token: (seen.headers["apns-push-type"], seen.headers["apns-topic"]) for seen in world.server.seen}
    for number, (kind, suffix) in enumerate(suffixes.items()):
        assert topics[device_token(number)] == (kind, "com.example.shop" + suffix)
    assert topics[device_token(99)] == ("mdm", "com.apple.mgmt.External.1234")
    assert topics[device_token(98)] == ("alert", "com.example.other")


def test_a_wrong_environment_shows_everywhere(world):
    """Every token is called bad, as by the wrong environment: log, metric, readiness and events say so, and stop to."""
    martlet = world.martlet().wait_ready()
    world.server.answer_by_default(lambda _: Answer(400, "BadDeviceToken"))
    world.send([as_record(request(device_token(number))) for number in range(150)])
    events = world.events.count(150, timeout=60)
    for record in events:
        check_event(record)
    doubted = sum(record.json["suspect"] for record in events)
    assert 0 < doubted <= 51, "from the hundredth on"
    assert martlet.metrics()['martlet_app_suspect{app="shop-ios"}'] == 1
    status, body = martlet.get("/readyz")
    assert status == 200
    assert [note["app"] for note in json.loads(body)["notes"]] == ["shop-ios"]
    assert '"code":"app_suspect"' in martlet.text()
    world.server.answer_by_default(lambda _: Answer())
    world.send([as_record(request(device_token(number))) for number in range(400)])
    world.results.count(550, timeout=60)
    until("nobody is under suspicion", lambda: martlet.metrics()['martlet_app_suspect{app="shop-ios"}'] == 0, 10)
    assert "notes" not in json.loads(martlet.get("/readyz")[1])
    assert '"code":"app_unsuspected"' in martlet.text()
