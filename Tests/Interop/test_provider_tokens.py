"""Provider tokens, judged by PyJWT."""

import time

from apns_standin import Answer
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


def test_a_connection_sees_one_key_and_one_app(world):
    """Keys that are good for some topics only share no connection with another; the stand-in refuses a second one."""
    keys = [world.key(f"TOPICKEY{number:02}", "TEAMONE123") for number in range(3)]
    for number in range(9):
        world.app(f"app-{number}", f"com.example.app{number}", keys[number % 3])
    world.martlet().wait_ready()
    fields = [request(device_token(number), app=f"app-{number % 9}") for number in range(450)]
    world.send([as_record(one) for one in fields])
    records = world.results.count(len(fields))
    assert {(check_result(record)["status"], record.json["attempts"]) for record in records} == {("delivered", 1)}
    by_connection = {}
    for seen in world.server.seen:
        by_connection.setdefault(seen.connection, set()).add((seen.claims["kid"], seen.headers["apns-topic"]))
    assert all(len(pairs) == 1 for pairs in by_connection.values())


def test_after_too_many_token_updates_the_same_token_goes_elsewhere(world):
    world.martlet(lanes=1, maxConnectionsPerApp=1).wait_ready()
    world.send([as_record(request(device_token(1)))])
    world.results.count(1)
    world.server.answer(device_token(2), Answer(429, "TooManyProviderTokenUpdates"), Answer())
    world.send([as_record(request(device_token(number))) for number in (2, 3)])
    records = world.results.count(3)
    assert {check_result(record)["status"] for record in records} == {"delivered"}
    refused, again = world.server.seen_for(device_token(2))
    assert refused.connection != again.connection, "that connection is of no use for a while"
    assert len({seen.headers["authorization"] for seen in world.server.seen}) == 1, "the token is good"


def test_a_token_that_stays_expired_is_sent_three_times_and_nobody_signs_in_haste(world):
    """As with a clock that is wrong: no storm of tokens, and a request ends as refused."""
    martlet = world.martlet()
    martlet.wait_ready()
    world.server.answer_by_default(Answer(403, "ExpiredProviderToken"))
    world.send([as_record(request(device_token(1)))])
    (record,) = world.results.count(1)
    result = check_result(record)
    assert (result["status"], result["reason"], result["attempts"]) == ("rejected", "ExpiredProviderToken", 3)
    assert len(world.server.seen) == len({seen.connection for seen in world.server.seen}) == 3
    assert len({seen.headers["authorization"] for seen in world.server.seen}) == 1
    assert '"provider_token_refused"' in martlet.text()
    assert not world.events.poll(0.3)


def test_two_replicas_have_tokens_of_their_own(world):
    for _ in range(2):
        world.martlet().wait_ready()
    world.send([as_record(request(device_token(number))) for number in range(400)])
    records = world.results.count(400, timeout=60)
    assert {check_result(record)["status"] for record in records} == {"delivered"}
    assert len({seen.headers["authorization"] for seen in world.server.seen}) == 2
    by_connection = {}
    for seen in world.server.seen:
        by_connection.setdefault(seen.connection, set()).add(seen.headers["authorization"])
    assert all(len(tokens) == 1 for tokens in by_connection.values())


def test_a_storm_on_one_connection_is_cured_by_another(world):
    """A connection on which every token is called expired, with hundreds of requests open: one token, no loss."""
    world.martlet(lanes=1, maxConnectionsPerApp=1).wait_ready()
    world.send([as_record(request(device_token(0)))])
    world.results.count(1)
    stuck = world.server.seen[0].connection
    world.server.answer_by_default(
        lambda seen: Answer(403, "ExpiredProviderToken", delay=0.2) if seen.connection == stuck else Answer()
    )
    world.send([as_record(request(device_token(number))) for number in range(1, 1001)])
    records = world.results.count(1001, timeout=60)
    assert {check_result(record)["status"] for record in records} == {"delivered"}
    refused = [seen for seen in world.server.seen[1:] if seen.connection == stuck]
    assert len(refused) > 100, "a storm"
    assert len({seen.headers["authorization"] for seen in world.server.seen}) == 1
    assert len({seen.connection for seen in world.server.seen}) < 5
