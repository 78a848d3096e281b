"""Everything that one test needs around the service: broker, server, keys, configuration, readers."""

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import planted
from apns_standin import APNsStandIn
from credentials import CertificateAuthority, ServerIdentity, SigningKey, make_signing_key
from kafka_broker import KafkaBroker
from kafka_io import Outgoing, Reader, produce
from processes import Martlet, MockKafka, Program, find_binary, free_port

TOPICS = {
    "push.requests": 8,
    "push.results": 8,
    "push.invalid-tokens": 2,
    "push.dead-letters": 2,
    "push.deferred": 4,
}
DEFAULT_APP = "shop-ios"


def device_token(number: int, digits: int = 64) -> str:
    """A device token that no other number has."""
    return f"{number:0{digits}x}"[-digits:]


def request(token: str, app: str = DEFAULT_APP, **fields: Any) -> dict[str, Any]:
    """A request in its JSON form, with an id unless one is given (`id=None`: none)."""
    made = {
        "id": str(uuid.uuid4()),
        "app": app,
        "token": token,
        "payload": {"aps": {"alert": "Hello"}, "planted": planted.PAYLOAD},
        **fields,
    }
    return {name: value for name, value in made.items() if not (name == "id" and value is None)}


def as_record(fields: Mapping[str, Any], **options: Any) -> Outgoing:
    return Outgoing(json.dumps(fields, ensure_ascii=False).encode(), **options)


@dataclass
class App:
    name: str
    bundle: str
    key: SigningKey | None
    environment: str = "production"
    server: dict[str, Any] | None = None
    #: The app's `certificate` in the configuration, in place of a key.
    certificate: dict[str, Any] | None = None
    #: Further settings of the app.
    settings: dict[str, Any] = field(default_factory=dict)

    def credentials(self) -> dict[str, Any]:
        if self.certificate is not None:
            return {"certificate": self.certificate}
        assert self.key is not None
        return {
            "token": {"keyFile": str(self.key.file), "keyId": self.key.key_id, "teamId": self.key.team_id},
        }


@dataclass
class World:
    """Made by the fixture of the same name; what it starts ends with the test."""

    directory: Path
    topics: dict[str, int] = field(default_factory=lambda: dict(TOPICS))
    programs: list[Program] = field(default_factory=list)
    readers: dict[str, Reader] = field(default_factory=dict)
    keys: dict[str, SigningKey] = field(default_factory=dict)
    apps: dict[str, App] = field(default_factory=dict)
    group: str = "martlet"
    #: The stand-in asks for certificates that this file's authorities have issued.
    client_authority: Path | None = None
    #: The one version of TLS that the stand-in speaks, as Python calls it.
    tls_version: str | None = None
    #: Settings of `output`.
    output: dict[str, Any] = field(default_factory=dict)
    brokers: int = 1
    #: What goes over the `kafka` section of the configuration.
    kafka_settings: dict[str, Any] = field(default_factory=dict)
    #: What goes over its properties.
    kafka_properties: dict[str, Any] = field(default_factory=dict)
    _kafka: MockKafka | None = None
    _broker: KafkaBroker | None = None
    _server: APNsStandIn | None = None

    def __post_init__(self) -> None:
        self.binary = find_binary()
        self.authority = CertificateAuthority(self.directory)
        self.identity: ServerIdentity = self.authority.issue()

    # The parts.

    @property
    def kafka(self) -> MockKafka:
        if self._kafka is None:
            log = self.directory / "mock-kafka.log"
            self._kafka = MockKafka(self.binary, self.topics, log, self.brokers).start()
            self.programs.append(self._kafka)
        return self._kafka

    @property
    def broker(self) -> KafkaBroker:
        """The stand-in for a broker; in a test that uses it, in place of the embedded ones."""
        if self._broker is None:
            assert self._kafka is None, "there is a broker already"
            self._broker = KafkaBroker(self.topics)
        return self._broker

    @property
    def has_broker(self) -> bool:
        return self._broker is not None

    @property
    def bootstrap(self) -> str:
        return self._broker.bootstrap if self._broker else self.kafka.bootstrap

    @property
    def server(self) -> APNsStandIn:
        """The stand-in; it knows the keys that were made before its first use."""
        if self._server is None:
            known = {key.key_id: (key.team_id, key.public_pem) for key in self.keys.values()}
            self._server = APNsStandIn(
                self.identity.certificate, self.identity.key, known,
                client_authority=self.client_authority, tls_version=self.tls_version,
            ).start()  # fmt: skip
        return self._server

    def key(self, key_id: str = "ABC123DEFG", team_id: str = "DEF123GHIJ") -> SigningKey:
        if key_id not in self.keys:
            self.keys[key_id] = make_signing_key(self.directory, key_id, team_id)
        return self.keys[key_id]

    def app(
        self, name: str = DEFAULT_APP, bundle: str = "com.example.shop", key: SigningKey | None = None,
        server: dict[str, Any] | None = None, environment: str = "production",
        certificate: dict[str, Any] | None = None, **settings: Any,
    ) -> App:  # fmt: skip
        if certificate is None:
            key = key or self.key()
        self.apps[name] = App(name, bundle, key, environment, server, certificate, settings)
        return self.apps[name]

    # The service.

    def configuration(self, http_port: int, **delivery: Any) -> dict[str, Any]:
        return {
            "kafka": {
                "brokers": self.bootstrap,
                "group": self.group,
                "topics": {
                    "requests": ["push.requests"],
                    "results": "push.results",
                    "invalidTokens": "push.invalid-tokens",
                    "deadLetters": "push.dead-letters",
                    "deferred": "push.deferred",
                },
                # The place of a process that was killed must not stay taken for long.
                "properties": {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500", **self.kafka_properties},
                **self.kafka_settings,
            },
            "apps": {
                app.name: {
                    "bundleId": app.bundle,
                    "environment": app.environment,
                    **app.credentials(),
                    "server": app.server
                    or {"host": "localhost", "port": self.server.port, "caFile": str(self.authority.authority)},
                    **app.settings,
                }
                for app in self.apps.values()
            },
            # Where chance has a request fail three times in a row, no test waits for a quarter of an hour.
            "delivery": {"retryBackoff": {"lasting": "0s"}, **delivery},
            "output": self.output,
            "http": {"listen": f"127.0.0.1:{http_port}"},
            "log": {"level": "info", "format": "json"},
        }

    def martlet(self, **delivery: Any) -> Martlet:
        """A service that has been started; with the default app unless the test has made some."""
        if not self.apps:
            self.app()
        port = free_port()
        return self.martlet_from(self.configuration(port, **delivery), port)

    def martlet_from(self, configuration: dict[str, Any], port: int = 0) -> Martlet:
        """A service that has been started with this configuration."""
        number = sum(isinstance(program, Martlet) for program in self.programs) + 1
        path = self.directory / f"martlet-{number}.json5"
        path.write_text("// Written by a test.\n" + json.dumps(configuration, indent=2))
        martlet = Martlet(self.binary, path, port, self.directory / f"martlet-{number}.log")
        self.programs.append(martlet)
        return martlet.start()

    # The topics.

    def send(self, records: Iterable[Outgoing], codec: str = "none") -> list[tuple[int, int]]:
        return produce(self.bootstrap, "push.requests", records, codec)

    def reader(self, topic: str) -> Reader:
        if topic not in self.readers:
            self.readers[topic] = Reader(self.bootstrap, topic)
        return self.readers[topic]

    @property
    def results(self) -> Reader:
        return self.reader("push.results")

    @property
    def events(self) -> Reader:
        return self.reader("push.invalid-tokens")

    @property
    def dead_letters(self) -> Reader:
        return self.reader("push.dead-letters")

    # Secrets.

    def secrets(self) -> list[str]:
        """The secret parts of every key that was made."""
        return [line for key in self.keys.values() for line in planted.key_lines(key.file)]

    def leaks(self) -> list[str]:
        """What of all that is secret stands in what the service wrote."""
        written = (program.text() for program in self.programs if isinstance(program, Martlet))
        return [leak for text in written for leak in planted.found(text, self.secrets())]

    # The end.

    def logs(self) -> dict[str, str]:
        return {program.log.name: program.tail() for program in self.programs}

    def close(self) -> None:
        for reader in self.readers.values():
            reader.__exit__()
        for program in reversed(self.programs):
            program.kill()
        if self._server is not None:
            self._server.stop()
        if self._broker is not None:
            self._broker.close()
            assert not self._broker.problems, self._broker.problems[:5]
