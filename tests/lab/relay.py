"""Makes a service of this machine's loopback reachable from containers, at one address that is theirs."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_PIECE_BYTES: Final = 256 << 10


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True

    def __init__(self, address: str, port: int) -> None:
        self.port = port
        super().__init__((address, 0), _Connection)


class _Connection(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        """Pass both directions on until both have ended."""
        with socket.create_connection((LOOPBACK, self.server.port)) as service:
            back = threading.Thread(target=_pump, args=(service, self.request))
            back.start()
            _pump(self.request, service)
            back.join()


@contextmanager
def relay(address: str, port: int) -> Iterator[int]:
    """A port at `address` behind which 127.0.0.1:`port` answers, for the length of a with block."""
    with _Server(address, port) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(_PIECE_BYTES):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
