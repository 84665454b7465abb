"""The account's side of the wire: one thread per connection, deliveries that stall, trickle or break off."""

from __future__ import annotations

import http
import http.server
import socket
import socketserver
import struct
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.lab.answers import Answer, Ending, Request
from tests.lab.certificate import server_context

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOOPBACK: Final = "127.0.0.1"
PIECE_BYTES: Final = 64 << 10
# Pieces small enough that a slow body trickles instead of coming in steps.
SLOW_PIECES_PER_S: Final = 50
RESET: Final = struct.pack("ii", 1, 0)


@dataclass
class Exchange:
    """A request with what was answered; `sent_bytes` counts the body alone, and before it is on its way.

    Otherwise a client could have its last byte and end before that byte is counted.
    """

    request: Request
    status: int
    sent_bytes: int = 0


class BlobServer(socketserver.ThreadingTCPServer):
    """Asks `answer` about each request, delivers what it says and tells `record`."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(
        self,
        answer: Callable[[Request], Answer],
        record: Callable[[Exchange], None],
        certificate: Path | None,
        address: str = LOOPBACK,
    ) -> None:
        self.answer = answer
        self.record = record
        self.stopping = threading.Event()
        self.context = server_context(certificate) if certificate else None
        super().__init__((address, 0), _Handler)

    @property
    def authority(self) -> str:
        """Host and port."""
        address, port = self.socket.getsockname()
        return f"{address}:{port}"

    def stop(self) -> None:
        """End the answers that are held back, and take no more."""
        self.stopping.set()
        self.shutdown()
        self.server_close()

    def get_request(self) -> tuple[socket.socket, object]:
        """Accept, and speak TLS where there is a certificate."""
        connection, address = super().get_request()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.context:
            # The handshake happens in the connection's own thread: one slow client must not stop the others.
            connection = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Close; a connection that is to be reset must not send FIN first."""
        if isinstance(request, socket.socket) and _lingers_zero(request):
            request.close()
        else:
            super().shutdown_request(request)

    def handle_error(self, *_: object) -> None:
        """A client that went away is no news: the tests kill them."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BlobServer

    def log_message(self, *_: object) -> None:
        """The account keeps its own record."""

    def _serve(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, time.monotonic())
        answer = self.server.answer(request)
        exchange = Exchange(request, answer.status)
        self.server.record(exchange)
        try:
            self._deliver(answer, exchange)
        except OSError:
            self.close_connection = True  # the client went away, as killed clients do

    def _deliver(self, answer: Answer, exchange: Exchange) -> None:
        if answer.silent:
            self.server.stopping.wait()
        if not answer.headless:
            self.wfile.write(_head(answer))
            if self.command != "HEAD":
                self._send_body(answer, exchange)
        if answer.silent or answer.ending is not Ending.KEEP:
            self.close_connection = True
        if answer.ending is Ending.RESET:
            # Lingering for zero seconds is what makes the kernel send RST at the close.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def _send_body(self, answer: Answer, exchange: Exchange) -> None:
        body = memoryview(answer.body)[: answer.send_bytes]
        piece_bytes = PIECE_BYTES
        if answer.bytes_per_s:
            piece_bytes = max(1, int(answer.bytes_per_s / SLOW_PIECES_PER_S))
        for start in range(0, len(body), piece_bytes):
            piece = body[start : start + piece_bytes]
            exchange.sent_bytes += len(piece)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), bytes(piece)) if answer.chunked else piece)
            if answer.bytes_per_s:
                self.server.stopping.wait(len(piece) / answer.bytes_per_s)
        if answer.chunked:
            self.wfile.write(b"0\r\n\r\n")

    do_GET = do_HEAD = _serve  # noqa: N815 - the names that http.server looks for


def _lingers_zero(connection: socket.socket) -> bool:
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, len(RESET)) == RESET


def _head(answer: Answer) -> bytes:
    headers = dict(answer.headers)
    if answer.chunked:
        headers["Transfer-Encoding"] = "chunked"
    if answer.ending is Ending.CLOSE:
        headers["Connection"] = "close"
    lines = [f"HTTP/1.1 {answer.status} {http.HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
