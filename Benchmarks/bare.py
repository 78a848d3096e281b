"""A consumer that does nothing but read: what is left for the service to be better than.

Reads as many requests as it is told to from all partitions of `push.requests`, and prints how long after their
timestamps they were there, in milliseconds: half and 99 % of them.
"""

import sys
import time

from confluent_kafka import Consumer, TopicPartition

TIMEOUT = 60


def main(bootstrap: str, partitions: int, count: int, properties: dict[str, str]) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": "bench-bare", "enable.auto.commit": False, **properties}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition("push.requests", number, 0) for number in range(partitions)])
    passed: list[float] = []
    print("reads", flush=True)
    deadline = time.monotonic() + TIMEOUT
    while len(passed) < count and time.monotonic() < deadline:
        messages = consumer.consume(1000, timeout=0.001)
        now = time.time() * 1000
        passed.extend(now - message.timestamp()[1] for message in messages)
    consumer.close()
    passed.sort()
    print(*(passed[int(len(passed) * share)] for share in (0.5, 0.99)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), dict(each.split("=", 1) for each in sys.argv[4:]))
