"""The bench's own reference: HTTP range GETs over bare sockets, TLS by ssl.MemoryBIO, nothing else."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_RECV_BYTES: Final = 256 * 1024


class _Stream(Protocol):
    def sendall(self, data: bytes, /) -> None: ...

    def recv_into(self, buffer: memoryview, /) -> int: ...


class MemoryBioStream:
    """TLS over a plain socket with 256 KiB per receive: fewer calls than OpenSSL's own 5 + 16 KiB reads."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, host: str) -> None:
        self._socket = plain
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._encrypted = memoryview(bytearray(_RECV_BYTES))
        self._until_done(self._tls.do_handshake)

    def sendall(self, data: bytes, /) -> None:
        """Encrypt and send."""
        self._tls.write(data)
        self._socket.sendall(self._outgoing.read())

    def recv_into(self, buffer: memoryview, /) -> int:
        """Decrypt at most one record into `buffer`; how many bytes."""
        while True:
            try:
                # typeshed knows only the form without a buffer, which returns bytes.
                return self._tls.read(len(buffer), buffer)  # type: ignore[return-value]
            except ssl.SSLWantReadError:
                self._receive()

    def _until_done(self, step: Callable[[], None]) -> None:
        while True:
            try:
                step()
            except ssl.SSLWantReadError:
                self._socket.sendall(self._outgoing.read())
                self._receive()
            else:
                self._socket.sendall(self._outgoing.read())
                return

    def _receive(self) -> None:
        count = self._socket.recv_into(self._encrypted)
        if count == 0:
            raise ConnectionError("the server closed the connection")
        self._incoming.write(self._encrypted[:count])


class HttpReader:
    """GET of a range over one kept-alive connection, the body straight into the buffer."""

    def __init__(self, url: str, stream: _Stream) -> None:
        parts = urlsplit(url)
        self._stream = stream
        self._head = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"

    def __call__(self, offset_bytes: int, buffer: memoryview, /) -> None:
        """Fill `buffer` from the blob's byte `offset_bytes` on."""
        last = offset_bytes + len(buffer) - 1
        self._stream.sendall(f"{self._head}x-ms-range: bytes={offset_bytes}-{last}\r\n\r\n".encode())
        filled = self._read_head(buffer)
        while filled < len(buffer):
            count = self._stream.recv_into(buffer[filled:])
            if count == 0:
                raise ConnectionError("the body was cut short")
            filled += count

    def _read_head(self, buffer: memoryview) -> int:
        """Read past the response's head; how many bytes of the body came along, now in `buffer`."""
        head = bytearray()
        chunk = memoryview(bytearray(16 * 1024))
        while (end := head.find(b"\r\n\r\n")) < 0:
            count = self._stream.recv_into(chunk)
            if count == 0:
                raise ConnectionError("the response has no head")
            head += chunk[:count]
        if not head.startswith(b"HTTP/1.1 206"):
            raise ConnectionError(f"expected 206, got {bytes(head[:40])!r}")
        body = head[end + 4 :]
        buffer[: len(body)] = body
        return len(body)


def connect(url: str) -> tuple[socket.socket, str]:
    """A socket to the URL's host, without TLS, and the host's name."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    plain = socket.create_connection((host, parts.port or 0), timeout=30)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return plain, host
