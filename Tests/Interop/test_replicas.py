"""Two replicas of the service against embedded brokers that die and misbehave."""

import time

from replicas import PARTITIONS, Traffic, around_changes, check_repeats, equip, share


def test_brokers_that_die_and_misbehave_cost_no_result(world):
    """Three brokers: each is away in turn, the coordinator and leaders move, and requests are refused at random."""
    world.brokers = 3
    equip(world)
    replicas = [world.martlet().wait_ready(), world.martlet().wait_ready()]
    share(replicas)
    kafka = world.kafka
    with Traffic(world) as traffic:
        traffic.flows(1)
        for broker in (1, 2, 3):
            kafka.order("broker", broker, "down")
            time.sleep(2)
            kafka.order("broker", broker, "up")
            traffic.flows(1)
        for partition in range(PARTITIONS):
            kafka.order("leader", "push.requests", partition, partition % 3 + 1)
        kafka.order("coordinator", world.group, 2)
        kafka.order("fail", "produce", "NOT_ENOUGH_REPLICAS", 3)
        kafka.order("fail", "fetch", "NOT_LEADER_FOR_PARTITION", 20)
        kafka.order("fail", "offsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", 4)
        kafka.order("fail", "heartbeat", "NOT_COORDINATOR", 2)
        traffic.flows(2)
        traffic.finish(replicas)
        traffic.tell("brokers")
        check_repeats(traffic, around_changes(world))
