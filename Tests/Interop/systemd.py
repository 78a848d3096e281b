"""A socket in systemd's place."""

import socket
from contextlib import suppress

import pytest

from waiting import PATIENCE


class Manager:
    """A datagram socket, as the service manager has one."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(20 * PATIENCE)

    def hear(self) -> dict[str, str]:
        """The next message but signs of life."""
        while True:
            text = self.socket.recv(4096).decode()
            if text != "WATCHDOG=1":
                return dict(line.split("=", 1) for line in text.splitlines())

    def hear_sign_of_life(self) -> None:
        while self.socket.recv(4096) != b"WATCHDOG=1":
            pass

    def hear_silence(self) -> None:
        """No sign of life within a second, after those that have come."""
        self.socket.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                self.socket.recv(4096)
        self.socket.settimeout(1)
        with pytest.raises(TimeoutError):
            self.socket.recv(4096)
        self.socket.settimeout(20 * PATIENCE)
