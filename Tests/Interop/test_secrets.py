"""No secret, payload or whole device token in any line, whatever goes wrong and however much is logged.

The same search goes over the logs of every other test of this suite when it ends (`conftest.py`).
"""

import base64
import json

import pytest

import planted
from apns_standin import Answer
from waiting import until
from world import as_record, device_token, request


def test_the_search_finds_what_is_planted():
    token = base64.urlsafe_b64encode(b'{"alg":"ES256","kid":"ABC123DEFG"}').decode().rstrip("=")
    for text in (
        f"authorization: bearer {token}.e30.c2ln", device_token(7), f'{{"alert":"{planted.PAYLOAD}"}}',
        f"sasl.password={planted.PASSWORD}", "-----BEGIN PRIVATE KEY-----", "MIGHAgEAMBMG",
    ):  # fmt: skip
        assert planted.found(f"one\n{text}\nthree", ["MIGHAgEAMBMG"]), text
    assert not planted.found('{"token":"0000…0007","apns_id":"5f0c4e1a-0000-4000-8000-000000000000"}')


@pytest.mark.parametrize(
    ("log", "output", "secrets", "code"),
    [
        ("INFO Started\n", "Test run with 9 tests passed\n", "MIGHAgEAMBMG\n", 0),
        ("INFO Started MIGHAgEAMBMG\n", "Test run with 9 tests passed\n", "MIGHAgEAMBMG\n", 1),
        ("INFO Started\n", f"sasl.password={planted.PASSWORD}\n", "MIGHAgEAMBMG\n", 1),
        ("", "Test run with 9 tests passed\n", "MIGHAgEAMBMG\n", 2),
        ("INFO Started\n", "", "MIGHAgEAMBMG\n", 2),
        ("INFO Started\n", "Test run with 9 tests passed\n", "", 2),
    ],
)
def test_the_search_of_what_the_swift_tests_left_can_fail(tmp_path, capsys, log, output, secrets, code):
    for name, text in (("services.log", log), ("secrets", secrets), ("output", output)):
        (tmp_path / name).write_text(text)
    assert planted.main([str(tmp_path), str(tmp_path / "output")]) == code
    assert "told" in capsys.readouterr().out or code == 2


def test_trace_logs_of_everything_that_goes_wrong_hold_no_secret(world):
    """All of librdkafka's log, a proxy and a broker with passwords, and an APNs that answers in every way."""
    password = world.directory / "password"
    password.write_text(planted.PASSWORD + "\n")
    world.app("shop-ios")
    world.app("proxied", "com.example.proxied")
    configuration = world.configuration(0)
    configuration["log"] = {"level": "trace", "format": "json"}
    configuration["kafka"]["properties"] |= {
        "debug": "all",
        "sasl.password": {"file": str(password)},
        "sasl.username": "u",
    }
    configuration["apps"]["proxied"]["proxy"] = {
        "host": "127.0.0.1", "port": 9, "usernameFile": str(password), "passwordFile": str(password),
    }  # fmt: skip
    configuration["delivery"] = {"attempts": 2, "retryBackoff": {"initial": "10ms", "max": "50ms"}}
    answers = [
        Answer(200), Answer(400, "BadDeviceToken"), Answer(403, "InvalidProviderToken"), Answer(410, "Unregistered"),
        Answer(429, "TooManyRequests"), Answer(500, "InternalServerError"), Answer(reset=8),
        Answer(400, body=b'{"reason":"eyJhbGciOiJFUzI1NiJ9.x"}'),
    ]  # fmt: skip
    world.server.answer_by_default(lambda seen: answers[int(seen.token, 16) % len(answers)])
    martlet = world.martlet_from(configuration)
    until("it has begun", lambda: "partitions_assigned" in martlet.text(), 30)
    records = [as_record(request(device_token(number))) for number in range(90)]
    records += [as_record(request(device_token(number), app="proxied")) for number in range(20)]
    records += [as_record(request(device_token(1), push_type=planted.PAYLOAD)), as_record(request("zz" * 40))]
    world.send(records)
    world.results.until("most have ended", lambda records: len(records) >= 60, timeout=60)
    # A key that cannot be read any more, and a configuration with a password where none belongs.
    world.key().file.write_text("-----BEGIN PRIVATE KEY-----\n" + base64.b64encode(b"planted" * 9).decode() + "\n")
    configuration["kafka"]["properties"]["sasl.password"] = planted.PASSWORD
    (world.directory / "martlet-1.json5").write_text(json.dumps(configuration))
    until("the reload is refused", lambda: "reload_refused" in martlet.text(), 30)
    martlet.terminate()
    text = martlet.text()
    assert '"level":"debug"' in text
    assert len(text.splitlines()) > 200
    assert not planted.found(text, [base64.b64encode(b"planted" * 9).decode(), *world.secrets()])
