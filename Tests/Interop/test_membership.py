"""Replicas that come, go and die, in groups as real brokers keep them: a rollout, a kill, a freeze, static members."""

import os
import signal
import time

import pytest

from apns_standin import Answer
from replicas import (
    PARTITIONS,
    STRATEGIES,
    Traffic,
    around_a_kill,
    check_repeats,
    equip,
    partitions_of,
    requests_of,
    share,
)  # fmt: skip
from waiting import PATIENCE, until
from world import TOPICS, as_record, device_token, request

ALL = PARTITIONS + TOPICS["push.deferred"]
#: How long a drain may take, and beyond it the last commit and the farewell to the group, in seconds.
DRAIN, FAREWELL = 5.0, 7.0
#: How long a replica may be silent here, in seconds.
SESSION = 3


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_rolling_update_loses_and_repeats_nothing(world, strategy):
    """What Kubernetes does with maxSurge 1: a new pod, and when it is ready SIGTERM for an old one; three times over.

    It does not wait for the group to come to rest, and answers come within five seconds: so nothing is repeated.
    """
    broker = world.broker
    equip(world, SESSION, **{"partition.assignment.strategy": strategy})
    # Long enough that rebalances and drains meet, and that much is in flight.
    world.server.answer_by_default(Answer(delay=1))
    replicas = [world.martlet(drainTimeout=f"{DRAIN}s") for _ in range(2)]
    for replica in replicas:
        replica.wait_ready()
    share(replicas)
    with Traffic(world) as traffic:
        traffic.flows()
        drains = []
        for _ in range(3):
            replicas.append(world.martlet(drainTimeout=f"{DRAIN}s").wait_ready())
            old, asked = replicas.pop(0), time.monotonic()
            assert old.terminate() == 0, old.tail()
            drains.append(time.monotonic() - asked)
        share(replicas)
        traffic.flows()
        traffic.finish(replicas)
        traffic.tell(f"rollout, {strategy}: drains of {', '.join(f'{each:.1f}' for each in drains)} s")
        print(f"commits refused: {broker.groups[world.group].refused}")
        assert max(drains) < (DRAIN + FAREWELL) * PATIENCE
        assert traffic.latencies()[-1] < (DRAIN + FAREWELL) * PATIENCE
        assert not traffic.repeats(), f"{len(traffic.repeats())} requests were sent again"


def test_a_rebalance_in_the_midst_of_a_drain_takes_nothing_from_what_is_open(world):
    """The group waits for the answers, and the new replica begins behind them."""
    assert world.broker.groups == {}
    old = world.martlet(drainTimeout="10s").wait_ready()
    world.server.answer_by_default(Answer(delay=4))
    asked = [request(device_token(number)) for number in range(100)]
    world.send([as_record(one) for one in asked])
    until("all are open", lambda: len(world.server.seen) == 100, 20)
    old.process.terminate()
    new = world.martlet()
    until("it is asked for its partitions", lambda: '"partitions_revoked"' in old.text(), 20)
    assert old.running
    new.wait_ready()
    assert old.wait() == 0
    world.results.by_id([one["id"] for one in asked], quiet=1)
    assert len(world.server.seen) == len(world.results.records) == 100


def test_of_three_replicas_one_is_killed(world):
    """The other two have its partitions once its session is over. Nothing is lost; what is repeated is the kill's."""
    equip(world, SESSION)
    assert world.broker.groups == {}
    replicas = [world.martlet() for _ in range(3)]
    for replica in replicas:
        replica.wait_ready()
    share(replicas)
    with Traffic(world) as traffic:
        traffic.flows()
        dead, *others = replicas
        had = requests_of(dead)
        dead.kill()
        killed = time.time()
        until("two have all", lambda: sum(map(partitions_of, others)) == ALL, 40)
        assert all(map(partitions_of, others))
        traffic.flows()
        traffic.finish(others)
        traffic.tell("one of three killed")
        check_repeats(traffic, [around_a_kill(killed)], had)
        assert traffic.latencies()[-1] < (SESSION + FAREWELL) * PATIENCE


def test_a_frozen_replica_is_left_behind_and_does_no_harm_when_it_is_back(world):
    """SIGSTOP for longer than the session timeout: others take over, and what it does late changes nothing."""
    equip(world, SESSION)
    assert world.broker.groups == {}
    replicas = [world.martlet(), world.martlet()]
    for replica in replicas:
        replica.wait_ready()
    share(replicas)
    with Traffic(world) as traffic:
        traffic.flows()
        frozen, other = replicas
        had = requests_of(frozen)
        os.kill(frozen.pid, signal.SIGSTOP)
        stopped = time.time()
        until("the other one has all", lambda: partitions_of(other) == ALL, 40)
        traffic.flows()
        os.kill(frozen.pid, signal.SIGCONT)
        share(replicas)
        back = time.time()
        traffic.flows()
        traffic.finish(replicas)
        traffic.tell("SIGSTOP")
        assert '"partitions_lost"' in frozen.text()
        # Until it hears that it was left behind, it goes on with what it had.
        check_repeats(traffic, [(around_a_kill(stopped)[0], back)], had)


def test_a_static_member_that_is_back_in_time_stops_nobody(world, monkeypatch):
    """One is restarted, one is killed and started again: nobody else hears of it, and nothing is lost."""
    equip(world, 10 * PATIENCE)
    world.kafka_settings["groupInstanceId"] = "${POD_NAME}"

    def pod(number: int):
        monkeypatch.setenv("POD_NAME", f"martlet-{number}")
        return world.martlet(drainTimeout=f"{DRAIN}s")

    group = world.broker.group(world.group)
    replicas = [pod(number) for number in range(3)]
    for replica in replicas:
        replica.wait_ready()
    share(replicas)
    with Traffic(world) as traffic:
        traffic.flows()
        generation, shares = group.generation, [partitions_of(each) for each in replicas]
        assert replicas[0].terminate() == 0
        replicas[0] = pod(0).wait_ready()
        traffic.flows(1)
        assert not traffic.repeats(), "a restart repeats nothing"
        had = requests_of(replicas[1])
        replicas[1].kill()
        killed = time.time()
        replicas[1] = pod(1).wait_ready()
        traffic.flows()
        assert group.generation == generation, "the group has rebalanced"
        assert [partitions_of(each) for each in replicas] == shares
        assert replicas[2].metrics()["martlet_rebalances_total"] == 1
        assert '"partitions_revoked"' not in replicas[2].text()
        traffic.finish(replicas)
        traffic.tell("static members")
        check_repeats(traffic, [around_a_kill(killed)], had)
