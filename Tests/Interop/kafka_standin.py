"""A stand-in for a Kafka controller: it makes topics on request and tells of their settings.

The embedded brokers do neither. It speaks metadata, CreateTopics and DescribeConfigs, in the structures of aiokafka,
and checks what real brokers check: numbers of partitions, replication, known settings, and who may do it.
"""

import asyncio
import io
import struct
import threading
from dataclasses import dataclass, field

from aiokafka.protocol import admin, metadata

NO_ERROR, UNSUPPORTED_VERSION, TOPIC_AUTHORIZATION_FAILED = 0, 35, 29
TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_CONFIG = 36, 37, 38, 40
UNKNOWN_TOPIC = 3
DEFAULTS = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "min.insync.replicas": "1",
    "segment.ms": "604800000",
}
#: Requests by key: the versions, and the structures of request and response. The highest version is the one to use.
SPOKEN = {
    3: (1, metadata.MetadataRequest_v1, metadata.MetadataResponse_v1),
    19: (1, admin.CreateTopicsRequest_v1, admin.CreateTopicsResponse_v1),
    32: (0, admin.DescribeConfigsRequest_v0, admin.DescribeConfigsResponse_v0),
}


@dataclass
class Topic:
    partitions: int
    replicas: int
    settings: dict[str, str] = field(default_factory=dict)


class KafkaStandIn:
    """One broker, the controller, on a port of 127.0.0.1. Leaving the `with` block ends it."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        #: Topics that nobody may make or describe the settings of.
        self.forbidden: set[str] = set()
        self.creations = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "KafkaStandIn":
        self._thread.start()
        serving = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop)
        self.port = serving.result(10).sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                request = await reader.readexactly(size)
                writer.write(self._answer(request))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, request: bytes) -> bytes:
        key, version, correlation, length = struct.unpack(">hhih", request[:10])
        body = io.BytesIO(request[10 + max(0, length) :])
        if key == 18:
            response = self._versions(version)
        else:
            wanted, request_type, response_type = SPOKEN[key]
            assert version == wanted, (key, version)
            response = getattr(self, f"_answer_{key}")(request_type.decode(body), response_type)
        content = struct.pack(">i", correlation) + response.encode()
        return struct.pack(">i", len(content)) + content

    def _versions(self, version: int) -> admin.ApiVersionResponse_v0:
        spoken = [(key, wanted, wanted) for key, (wanted, _, _) in SPOKEN.items()] + [(18, 0, 0)]
        return admin.ApiVersionResponse_v0(NO_ERROR if version == 0 else UNSUPPORTED_VERSION, spoken)

    def _answer_3(self, request, response_type):
        names = list(self.topics) if request.topics is None else request.topics
        described = []
        for name in names:
            topic = self.topics.get(name)
            if topic is None:
                described.append((UNKNOWN_TOPIC, name, False, []))
                continue
            partitions = [(NO_ERROR, number, 1, [1] * topic.replicas, [1]) for number in range(topic.partitions)]
            described.append((NO_ERROR, name, False, partitions))
        return response_type([(1, "127.0.0.1", self.port, None)], 1, described)

    def _answer_19(self, request, response_type):
        outcomes = []
        for name, partitions, replicas, _, settings in request.create_topic_requests:
            code, words = self._fault(name, partitions, replicas, settings)
            if code == NO_ERROR and not request.validate_only:
                self.creations += 1
                self.topics[name] = Topic(partitions, replicas, dict(settings))
            outcomes.append((name, code, words))
        return response_type(outcomes)

    def _fault(self, name, partitions, replicas, settings):
        if name in self.forbidden:
            return TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."
        if name in self.topics:
            return TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists."
        if partitions < 1:
            return INVALID_PARTITIONS, "Number of partitions must be larger than 0."
        if replicas > 1:
            return INVALID_REPLICATION_FACTOR, f"Replication factor {replicas} is larger than the number of brokers: 1."
        for key, _ in settings:
            if key not in DEFAULTS:
                return INVALID_CONFIG, f"Unknown topic config name: {key}"
        return NO_ERROR, None

    def _answer_32(self, request, response_type):
        described = []
        for kind, name, _ in request.resources:
            topic = self.topics.get(name)
            if name in self.forbidden or topic is None:
                code = TOPIC_AUTHORIZATION_FAILED if topic else UNKNOWN_TOPIC
                described.append((code, "Not for you.", kind, name, []))
                continue
            entries = [
                (key, value, False, key not in topic.settings, False)
                for key, value in {**DEFAULTS, **topic.settings}.items()
            ]
            described.append((NO_ERROR, None, kind, name, entries))
        return response_type(0, described)
