"""A small HTTP proxy: tunnels by `CONNECT` (RFC 9110, section 9.3.6), with basic authentication if it is told to."""

import base64
import contextlib
import socket
import threading


class ConnectProxy:
    """Leaving the `with` block ends it, and every tunnel with it."""

    def __init__(self, username: str | None = None, password: str = ""):
        self.expected = username and "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
        #: The target of each request that was granted, and how many were not.
        self.tunnels: list[str] = []
        self.refusals = 0
        self._sockets: list[socket.socket] = []

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing alone would leave the thread that accepts, and with it the socket.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Ends every tunnel there is."""
        for one in self._sockets:
            # It may have ended by itself.
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._sockets.clear()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            if not (some := client.recv(4096)):
                return client.close()
            head += some
        request, *lines = head.decode().split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, target, _ = request.split(" ")
        if self.expected and fields.get("proxy-authorization") != self.expected:
            self.refusals += 1
            client.sendall(
                b'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="tests"\r\n'
                b"Content-Length: 0\r\nConnection: close\r\n\r\n"
            )
            return client.close()
        assert (method, fields["host"]) == ("CONNECT", target)
        host, _, port = target.rpartition(":")
        server = socket.create_connection((host, int(port)))
        self.tunnels.append(target)
        self._sockets += [client, server]
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        threading.Thread(target=self._pump, args=(server, client), daemon=True).start()
        return self._pump(client, server)

    @staticmethod
    def _pump(source: socket.socket, target: socket.socket) -> None:
        try:
            while some := source.recv(65536):
                target.sendall(some)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The tunnel was cut.
