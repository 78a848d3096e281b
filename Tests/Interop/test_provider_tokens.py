"""Provider tokens, judged by PyJWT."""

import time

from contract import check_result
from world import as_record, device_token, request


def test_one_token_for_all_apps_of_a_team_and_key(world):
    shared, other = world.key("ABC123DEFG", "TEAMONE123"), world.key("XYZ987WVUT", "TEAMTWO456")
    apps = {"first": shared, "second": shared, "third": shared, "fourth": other}
    for name, key in apps.items():
        world.app(name, f"com.example.{name}", key)
    world.martlet().wait_ready()
    fields = [
        request(device_token(number), app=name) for number, name in enumerate(name for name in apps for _ in range(50))
    ]
    world.send([as_record(one) for one in fields])
    records = world.results.count(len(fields))
    assert {check_result(record)["status"] for record in records} == {"delivered"}

    by_key = {}
    for seen in world.server.seen:
        assert seen.claims["alg"] == "ES256"
        assert abs(seen.claims["iat"] - time.time()) < 600
        assert set(seen.claims) == {"iss", "iat", "kid", "alg"}, "nothing but what Apple asks for"
        assert seen.headers["authorization"].startswith("bearer ")
        by_key.setdefault((seen.claims["kid"], seen.claims["iss"]), set()).add(seen.headers["authorization"])
    assert set(by_key) == {("ABC123DEFG", "TEAMONE123"), ("XYZ987WVUT", "TEAMTWO456")}
    assert all(len(tokens) == 1 for tokens in by_key.values()), "one token each, however many apps and connections"

    teams = {}
    for seen in world.server.seen:
        teams.setdefault(seen.connection, set()).add(seen.headers["apns-topic"])
    assert all(len(topics) == 1 for topics in teams.values()), "apps do not share connections"


def test_one_stream_until_the_first_good_answer(world):
    """A burst on a fresh connection waits for the limit to rise: the stand-in counts the breaches."""
    world.martlet().wait_ready()
    fields = [request(device_token(number)) for number in range(2000)]
    world.send([as_record(one) for one in fields])
    world.results.count(len(fields), timeout=60)
    assert not world.server.violations
    assert len(world.server.seen) == len(fields)
