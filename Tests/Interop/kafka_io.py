"""Producing requests and reading what comes of them, with clients that share no code with the service."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiokafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from waiting import PATIENCE

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Outgoing:
    """A record to produce."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None


@dataclass(frozen=True)
class Incoming:
    """A record that was read."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = field(default=())
    timestamp: int = 0

    @property
    def json(self) -> dict[str, Any]:
        assert self.value is not None
        return json.loads(self.value)

    def header(self, name: str) -> bytes | None:
        return next((value for header, value in self.headers if header == name), None)


def produce(bootstrap: str, topic: str, records: Iterable[Outgoing], codec: str = "none") -> list[tuple[int, int]]:
    """Produces with confluent-kafka; the partition and offset of each record, in order."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.codec": codec,
            "linger.ms": 5,
            "acks": "all",
            "message.max.bytes": 4_000_000,
            "queue.buffering.max.messages": 500_000,
        }
    )
    places: dict[int, tuple[int, int]] = {}

    def reporter(index: int) -> Callable[..., None]:
        def report(error, message) -> None:
            if error is not None:
                raise KafkaException(error)
            places[index] = (message.partition(), message.offset())

        return report

    count = 0
    for index, record in enumerate(records):
        where = {} if record.partition is None else {"partition": record.partition}
        producer.produce(
            topic, value=record.value, key=record.key, headers=list(record.headers), on_delivery=reporter(index),
            **where,
        )  # fmt: skip
        producer.poll(0)
        count = index + 1
    left = producer.flush(60)
    assert left == 0, f"{left} records were not delivered"
    return [places[index] for index in range(count)]


def produce_with_aiokafka(
    bootstrap: str, topic: str, records: Sequence[Outgoing], codec: str = "none"
) -> list[tuple[int, int]]:
    """Produces with aiokafka, which shares nothing with librdkafka."""

    async def run() -> list[tuple[int, int]]:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec, acks="all"
        )
        await producer.start()
        try:
            sent = [
                await producer.send(
                    topic, value=record.value, key=record.key, headers=list(record.headers),
                    partition=record.partition,
                )
                for record in records
            ]  # fmt: skip
            return [(place.partition, place.offset) for place in await asyncio.gather(*sent)]
        finally:
            await producer.stop()

    return asyncio.run(run())


class Reader:
    """Reads a topic from its beginning, all partitions, outside of any group."""

    def __init__(self, bootstrap: str, topic: str):
        self.topic = topic
        self.records: list[Incoming] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "interop-reader",
                "enable.auto.commit": False,
                # A place that is gone would mean that records went unseen: an error, not a new start.
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,
                "queued.min.messages": 20_000,
            }
        )
        partitions = self._consumer.list_topics(topic, timeout=20).topics[topic].partitions
        self._places = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in sorted(partitions)]
        self._consumer.assign(self._places)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def poll(self, timeout: float = 0.1, most: int = 1000) -> list[Incoming]:
        """What has come since; kept in `records` too."""
        fresh = []
        for message in self._consumer.consume(most, timeout):
            if message.error() is not None:
                raise KafkaException(message.error())
            fresh.append(
                Incoming(
                    message.topic(),
                    message.partition(),
                    message.offset(),
                    message.key(),
                    message.value(),
                    tuple(message.headers() or ()),
                    message.timestamp()[1],
                )
            )
        self.records.extend(fresh)
        return fresh

    def until(
        self, what: str, enough: Callable[[list[Incoming]], bool], timeout: float = 40, quiet: float = 0
    ) -> list[Incoming]:
        """Reads until `enough` holds, then for `quiet` seconds more; all records so far."""
        deadline = time.monotonic() + timeout * PATIENCE
        while not enough(self.records):
            if time.monotonic() > deadline:
                last = self.records[-1].value if self.records else None
                raise AssertionError(
                    f"not within {timeout:g} s: {what}; {len(self.records)} records in {self.topic}, the last: {last!r}"
                )
            self.poll()
        end = time.monotonic() + quiet
        while time.monotonic() < end:
            self.poll(min(0.1, quiet))
        return self.records

    def count(self, number: int, timeout: float = 40, quiet: float = 0.3) -> list[Incoming]:
        """Exactly `number` records: waits for them, and a moment longer for one too many."""
        records = self.until(f"{number} records", lambda records: len(records) >= number, timeout, quiet)
        assert len(records) == number, [record.value for record in records][-5:]
        return records

    def by_id(self, identifiers: Iterable[str], timeout: float = 40, quiet: float = 0.3) -> dict[str, list[Incoming]]:
        """The records of each id once every one of `identifiers` has at least one."""
        wanted = set(identifiers)
        seen: set[str] = set()
        done = 0

        def enough(records: list[Incoming]) -> bool:
            nonlocal done
            for record in records[done:]:
                seen.add(record.json.get("id"))
            done = len(records)
            return wanted <= seen

        try:
            self.until("a record for each id", enough, timeout, quiet)
        except AssertionError as error:
            missing = sorted(wanted - seen)
            raise AssertionError(f"{error}; {len(missing)} ids without one, such as {missing[:5]}") from None
        found: dict[str, list[Incoming]] = {}
        for record in self.records:
            found.setdefault(record.json.get("id"), []).append(record)
        return found


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    """The group's committed offsets; -1001 where there is none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        return {place.partition: place.offset for place in consumer.committed(asked, timeout=20)}
    finally:
        consumer.close()
