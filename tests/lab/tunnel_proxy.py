"""A forward proxy that opens tunnels and remembers how it was asked for each."""

from __future__ import annotations

import http.server
import socket
import threading
from dataclasses import dataclass
from typing import Final, Self

LOOPBACK: Final = "127.0.0.1"
PIECE_BYTES: Final = 64 << 10
BACKLOG_S: Final = 30.0


@dataclass(frozen=True)
class Tunnel:
    """One CONNECT: where to, and with which Proxy-Authorization."""

    target: str
    authorization: str


class TunnelProxy:
    """Plain http on loopback, CONNECT only, for the length of a with block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tunnels: list[Tunnel] = []
        self._server = _Server(self)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def tunnels(self) -> list[Tunnel]:
        """All that were asked for so far; each is one connection."""
        with self._lock:
            return list(self._tunnels)

    def add(self, tunnel: Tunnel) -> None:
        """Remember it for the asserts."""
        with self._lock:
            self._tunnels.append(tunnel)


class _Server(http.server.ThreadingHTTPServer):
    block_on_close = False

    def __init__(self, proxy: TunnelProxy) -> None:
        self.proxy = proxy
        super().__init__((LOOPBACK, 0), _Handler)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """The proxy keeps its own record."""

    def do_CONNECT(self) -> None:
        self.server.proxy.add(Tunnel(self.path, self.headers.get("Proxy-Authorization", "")))
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port)), BACKLOG_S) as upstream:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_pump, args=(upstream, self.connection), daemon=True)
            back.start()
            _pump(self.connection, upstream)
            back.join()
        self.close_connection = True


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while piece := source.recv(PIECE_BYTES):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return  # one side went away, and the other will hear of it
