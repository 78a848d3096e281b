"""A second server that shares no code with the stand-in: nghttp2's own `nghttpd`, which serves files to any method."""

import pytest

from contract import check_result
from processes import nghttpd
from world import as_record, device_token, request


@pytest.fixture
def devices(world):
    """The folder whose files are the devices that `nghttpd` answers 200 for."""
    folder = world.directory / "htdocs" / "3" / "device"
    folder.mkdir(parents=True)
    return folder


def serve(world, *options):
    program, port = nghttpd(world.directory / "htdocs", world.identity, *options)
    world.programs.append(program)
    world.app(server={"host": "localhost", "port": port, "caFile": str(world.authority.authority)})
    return program


def test_files_are_delivered_and_missing_ones_rejected(world, devices):
    """A 404 whose body is a page of HTML: the status counts, and the text that is no JSON does no harm."""
    known, unknown = ([device_token(number + base) for number in range(300)] for base in (0, 1000))
    for token in known:
        (devices / token).write_bytes(b"")
    serve(world)
    world.martlet().wait_ready()
    world.send([as_record(request(token)) for pair in zip(known, unknown, strict=True) for token in pair])
    records = world.results.count(600)
    results = {record.json["token"]: check_result(record) for record in records}
    assert {results[token]["status"] for token in known} == {"delivered"}
    for token in unknown:
        result = results[token]
        assert (result["status"], result["http_status"], result["attempts"]) == ("rejected", 404, 1), result
    assert not world.events.poll(0.5), "a 404 says nothing of the token"


def test_a_body_on_a_200_and_small_windows(world, devices):
    """Answers with content, uploads that wait for windows of 1,023 bytes."""
    tokens = [device_token(number) for number in range(200)]
    for token in tokens:
        (devices / token).write_bytes(b"x" * 5000)
    serve(world, "-w", "10", "-W", "10")
    world.martlet().wait_ready()
    world.send([as_record(request(token, payload={"a": "x" * 4000})) for token in tokens])
    records = world.results.count(len(tokens))
    assert {check_result(record)["status"] for record in records} == {"delivered"}


def test_a_server_that_restarts(world, devices):
    """What comes while nobody listens waits; it is delivered once the server is back."""
    tokens = [device_token(number) for number in range(100)]
    for token in tokens:
        (devices / token).write_bytes(b"")
    program = serve(world)
    world.martlet().wait_ready()
    world.send([as_record(request(token)) for token in tokens[:50]])
    world.results.count(50)
    program.kill()
    world.send([as_record(request(token)) for token in tokens[50:]])
    assert not world.results.poll(2)
    program.start()
    records = world.results.until("all results", lambda records: len(records) >= 100, timeout=90)
    assert {check_result(record)["status"] for record in records} == {"delivered"}
    assert {record.json["token"] for record in records} == set(tokens)
