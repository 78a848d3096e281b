"""A stand-in for a Kafka broker with what the embedded ones lack: groups as real brokers keep them, with static members
(`kafka_group`), and logs whose offsets have gaps, from transactions and from compaction (`kafka_log`).

One broker; nothing is on disk. It speaks each request in one version, in the structures of aiokafka. As real brokers
do, it works at one request of a connection at a time: a commit waits behind a join that is not answered yet.
"""

import asyncio
import contextlib
import io
import itertools
import json
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping

from aiokafka.protocol import admin, coordination, fetch, group, metadata, offset, produce, transaction
from aiokafka.protocol import commit as commits
from aiokafka.protocol.struct import Struct
from aiokafka.protocol.types import Array, Int32, Int64, Schema, String

from kafka_group import Group
from kafka_log import PartitionLog

UNKNOWN_TOPIC, OFFSET_OUT_OF_RANGE, UNSUPPORTED_VERSION = 3, 1, 35


class HeartbeatRequest(Struct):
    """Version 3."""

    SCHEMA = Schema(
        ("group", String()), ("generation_id", Int32), ("member_id", String()), ("group_instance_id", String())
    )


class OffsetCommitRequest(Struct):
    """Version 7."""

    SCHEMA = Schema(
        ("group", String()), ("generation_id", Int32), ("member_id", String()), ("group_instance_id", String()),
        ("topics", Array(("name", String()), ("partitions", Array(
            ("partition", Int32), ("offset", Int64), ("leader_epoch", Int32), ("metadata", String()),
        )))),
    )  # fmt: skip


#: Requests by key: the lowest version that is announced (for clients that look for old ones), the one that is spoken,
#: and its structures.
SPOKEN = {
    0: (0, 3, produce.ProduceRequest_v3, produce.ProduceResponse_v3),
    1: (0, 4, fetch.FetchRequest_v4, fetch.FetchResponse_v4),
    2: (0, 1, offset.OffsetRequest_v1, offset.OffsetResponse_v1),
    3: (0, 4, metadata.MetadataRequest_v4, metadata.MetadataResponse_v4),
    8: (0, 7, OffsetCommitRequest, commits.OffsetCommitResponse_v3),
    9: (0, 3, commits.OffsetFetchRequest_v3, commits.OffsetFetchResponse_v3),
    10: (0, 1, coordination.FindCoordinatorRequest_v1, coordination.FindCoordinatorResponse_v1),
    11: (0, 5, group.JoinGroupRequest_v5, group.JoinGroupResponse_v5),
    12: (0, 3, HeartbeatRequest, group.HeartbeatResponse_v1),
    13: (0, 1, group.LeaveGroupRequest_v1, group.LeaveGroupResponse_v1),
    14: (0, 3, group.SyncGroupRequest_v3, group.SyncGroupResponse_v3),
    22: (0, 0, transaction.InitProducerIdRequest_v0, transaction.InitProducerIdResponse_v0),
}


class KafkaBroker:
    """Listens on a port of 127.0.0.1 until `close`."""

    def __init__(self, topics: Mapping[str, int], initial_delay: float = 0.5):
        self.logs = {name: [PartitionLog() for _ in range(count)] for name, count in topics.items()}
        self.groups: dict[str, Group] = {}
        #: What it was asked and cannot do.
        self.problems: list[str] = []
        self._initial_delay = initial_delay
        self._producers = itertools.count(1000)
        self._news: set[asyncio.Event] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        self.bootstrap = f"127.0.0.1:{self.port}"

    async def _listen(self) -> int:
        self._ticking = asyncio.create_task(self._tick())
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 22)
        return self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def do(self, work: Callable[[], object]):
        """Has something done between two requests, such as a transaction on a log."""

        async def run():
            result = work()
            self._tell()
            return result

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.05)
            for each in self.groups.values():
                each.tick()

    # Connections.

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                writer.write(await self._answer(await reader.readexactly(size)))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        except Exception as error:
            self.problems.append(repr(error))
            raise
        finally:
            writer.close()

    async def _answer(self, request: bytes) -> bytes:
        key, version, correlation, length = struct.unpack_from(">hhih", request)
        body = io.BytesIO(request[10 + max(0, length) :])
        if key == 18:
            spoken = [(each, low, high) for each, (low, high, _, _) in SPOKEN.items()] + [(18, 0, 0)]
            response = admin.ApiVersionResponse_v0(UNSUPPORTED_VERSION if version else 0, spoken)
        else:
            _, wanted, asked, answer = SPOKEN[key]
            assert version == wanted, f"request {key} in version {version}"
            parts = getattr(self, f"_answer_{key}")(asked.decode(body))
            response = answer(*(await parts if asyncio.iscoroutine(parts) else parts))
        content = struct.pack(">i", correlation) + response.encode()
        return struct.pack(">i", len(content)) + content

    def _log(self, topic: str, partition: int) -> PartitionLog:
        return self.logs[topic][partition]

    def group(self, name: str) -> Group:
        return self.groups.setdefault(name, Group(self._initial_delay))

    def committed(self, name: str, topic: str) -> dict[int, int]:
        """A group's committed offsets of a topic; -1001 where there is none."""
        known = self.group(name).offsets
        return {number: known.get((topic, number), (-1001, ""))[0] for number in range(len(self.logs[topic]))}

    # Records.

    def _answer_0(self, ask):
        done = [
            (topic, [(number, 0, self._log(topic, number).append(batch), -1) for number, batch in partitions])
            for topic, partitions in ask.topics
        ]
        self._tell()
        return done, 0

    def _tell(self) -> None:
        for each in self._news:
            each.set()

    async def _answer_1(self, ask):
        deadline = time.monotonic() + ask.max_wait_time / 1000
        news = asyncio.Event()
        self._news.add(news)
        try:
            while True:
                news.clear()
                found = self._fetch(ask)
                left = deadline - time.monotonic()
                if left <= 0 or any(part[1] or part[-1] for _, parts in found for part in parts):
                    return 0, found
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), left)
        finally:
            self._news.discard(news)

    def _fetch(self, ask) -> list[tuple[str, list[tuple]]]:
        """Batches up to the bytes that were asked for, or one, if it is longer."""
        room, found = ask.max_bytes, []
        for topic, partitions in ask.topics:
            parts = []
            for partition, position, limit in partitions:
                parts.append(self._read(topic, partition, position, min(limit, room), ask.isolation_level))
                room -= len(parts[-1][-1])
            found.append((topic, parts))
        return found

    def _read(self, topic: str, partition: int, position: int, limit: int, isolation: int):
        log = self._log(topic, partition)
        if position > log.end:
            return partition, OFFSET_OUT_OF_RANGE, -1, -1, None, b""
        stable = log.stable if isolation else log.end
        records = log.read(position, limit, stable) if limit > 0 else b""
        return partition, 0, log.end, log.stable, log.aborted_from(position), records

    def _answer_2(self, ask):
        def ends(topic: str, number: int, when: int):
            return number, 0, -1, 0 if when == -2 else self._log(topic, number).end

        return ([(topic, [ends(topic, *each) for each in partitions]) for topic, partitions in ask.topics],)

    def _answer_3(self, ask):
        topics = []
        for name in self.logs if ask.topics is None else ask.topics:
            logs = self.logs.get(name, [])
            parts = [(0, number, 1, [1], [1]) for number in range(len(logs))]
            topics.append((0 if logs else UNKNOWN_TOPIC, name, False, parts))
        return 0, [(1, "127.0.0.1", self.port, None)], "stand-in", 1, topics

    def _answer_22(self, _):
        return 0, 0, next(self._producers), 0

    # Groups.

    def _answer_8(self, ask):
        keeper = self.group(ask.group)
        fault = keeper.commit_fault(ask)
        if not fault:
            for topic, parts in ask.topics:
                keeper.offsets.update({(topic, number): (at, text or "") for number, at, _, text in parts})
        return 0, [(topic, [(part[0], fault) for part in parts]) for topic, parts in ask.topics]

    def _answer_9(self, ask):
        known = self.group(ask.consumer_group).offsets
        found = [
            (topic, [(number, *known.get((topic, number), (-1, "")), 0) for number in numbers])
            for topic, numbers in ask.topics or []
        ]
        return 0, found, 0

    def _answer_10(self, _):
        return 0, 0, None, 1, "127.0.0.1", self.port

    async def _answer_11(self, ask):
        return 0, *(await self.group(ask.group).join(ask))

    def _answer_12(self, ask):
        return 0, self.group(ask.group).heartbeat(ask)

    def _answer_13(self, ask):
        return 0, self.group(ask.group).leave(ask.member_id)

    async def _answer_14(self, ask):
        return 0, *(await self.group(ask.group).sync(ask))


def main() -> None:
    """In a process of its own until standard input ends; topics and partitions as arguments: `push.requests:8`."""
    topics = {name: int(count) for name, _, count in (each.rpartition(":") for each in sys.argv[1:])}
    broker = KafkaBroker(topics)
    print(json.dumps({"bootstrap_servers": broker.bootstrap}), flush=True)
    sys.stdin.read()
    broker.close()
    for problem in broker.problems:
        print(problem, file=sys.stderr)


if __name__ == "__main__":
    main()
