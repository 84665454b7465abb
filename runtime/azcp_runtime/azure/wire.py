"""HTTP/1.1 over our own sockets, so that a body lands in the caller's buffer and nowhere else.

http.client parses the head; the body is read past it. TLS goes through ssl.MemoryBIO with large
receives: SSLSocket makes two system calls per 16 KiB record, this makes one per 256 KiB.
"""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
from collections.abc import Callable
from typing import Final, cast
from urllib.parse import urlsplit

from azcp_runtime.azure.proxy import proxy_for

_RECEIVE_BYTES: Final = 256 << 10
_HEAD_BUFFER_BYTES: Final = 16 << 10
_CONNECT_TIMEOUT_S: Final = 20.0
_READ_TIMEOUT_S: Final = 60.0
_ERROR_BODY_BYTES: Final = 64 << 10


class WireError(Exception):
    """The exchange broke off: reset, closed early, timed out, or no HTTP. Always worth another try.

    Attributes:
        reached: whether the server may have seen the request.
    """

    def __init__(self, message: str, *, reached: bool) -> None:
        self.reached = reached
        super().__init__(message)


class Head:
    """Status line and headers of a response, and its body still on the wire.

    Attributes:
        is_spent: whether ``read_small`` left nothing of the body on the wire.
    """

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.reason = response.reason
        self.headers = dict(response.getheaders())
        self.length = response.length
        self.is_spent = False
        self.will_close = bool(response.will_close)

    def read_into(self, view: memoryview, arrived: Callable[[int], None]) -> int:
        """Bytes of the body put into view; fewer than its length only where the body was cut.

        ``arrived`` is told of each part: a slow body is not a stalled one.
        """
        done = 0
        try:
            while done < len(view):
                # One raw read a call: a reset loses nothing of what came before it.
                count = self._stream().readinto1(view[done:])
                if not count:
                    break
                done += count
                arrived(count)
        except OSError:  # a reset or a timeout: what arrived counts, the rest is asked for again
            return done
        return done

    def read_small(self) -> bytes:
        """The body of an error, at most 64 KiB of it."""
        try:
            body = self._response.read(_ERROR_BODY_BYTES)
        except (OSError, http.client.HTTPException):
            return b""
        # http.client closes its side at the end of a body, but at an early end of the stream too.
        self.is_spent = self._response.isclosed() and not self._response.length
        return body

    def _stream(self) -> io.BufferedReader:
        return self._response.fp


class Wire:
    """One kept-alive connection to one endpoint, for one thread.

    Args:
        base_url: scheme, host and port.
        tls: the context for https; made once per process, for it loads the CA certificates.
    """

    def __init__(self, base_url: str, tls: ssl.SSLContext | None) -> None:
        url = urlsplit(base_url)
        self._host = url.hostname or ""
        self._is_https = url.scheme == "https"
        self._port = url.port or (443 if self._is_https else 80)
        self._tls = tls
        self._socket: socket.socket | None = None
        self._raw: _TlsStream | socket.SocketIO | None = None

    def get(self, target: str, headers: dict[str, str]) -> Head:
        """Send a GET and read the head of its answer.

        Raises:
            WireError: no answer came. A kept connection that the server had closed meanwhile is
                opened again without a word.
        """
        request = _request_bytes(target, self._host_header(), headers)
        while True:
            was_open, reached = self._raw is not None, False
            try:
                self._open()
                reached = True
                self._send(request)
                return self._receive_head()
            except (OSError, http.client.HTTPException) as error:
                silent = isinstance(error, (http.client.RemoteDisconnected, ConnectionError))
                self.close()
                if not (was_open and silent):
                    raise WireError(f"{type(error).__name__}: {error}", reached=reached) from error

    def close(self) -> None:
        """Drop the connection; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._raw = None

    def _host_header(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return host if self._port == (443 if self._is_https else 80) else f"{host}:{self._port}"

    def _open(self) -> None:
        if self._raw is not None:
            return
        self._socket = self._connect()
        self._socket.settimeout(_READ_TIMEOUT_S)
        self._raw = (
            _TlsStream(self._socket, self._tls, self._host)
            if self._is_https and self._tls
            else socket.SocketIO(self._socket, "rw")
        )

    def _send(self, request: bytes) -> None:
        if isinstance(self._raw, _TlsStream):
            self._raw.send(request)
        elif self._socket is not None:
            self._socket.sendall(request)

    def _connect(self) -> socket.socket:
        proxy = proxy_for("https" if self._is_https else "http", self._host)
        if proxy is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=_CONNECT_TIMEOUT_S)
        else:
            connection = http.client.HTTPConnection(proxy.host, proxy.port, timeout=_CONNECT_TIMEOUT_S)
            connection.set_tunnel(self._host, self._port, proxy.headers)
        connection.connect()
        return connection.sock

    def _receive_head(self) -> Head:
        # HTTPResponse asks its socket for a file once and reads from that; ours is the raw stream.
        response = http.client.HTTPResponse(cast("socket.socket", _FileOf(self._raw)), method="GET")
        response.begin()
        return Head(response)


class _FileOf:
    """What http.client.HTTPResponse needs of a socket."""

    def __init__(self, raw: io.RawIOBase | None) -> None:
        self._raw = raw

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Unclosed(self._raw), _HEAD_BUFFER_BYTES)


class _Unclosed(io.RawIOBase):
    """A view of a stream whose closing leaves the connection open for the next request."""

    def __init__(self, raw: io.RawIOBase | None) -> None:
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        return self._raw.readinto(buffer) if self._raw else 0


class _TlsStream(io.RawIOBase):
    """TLS over a blocking socket through memory BIOs."""

    def __init__(self, connection: socket.socket, context: ssl.SSLContext, host: str) -> None:
        self._socket = connection
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._received = memoryview(bytearray(_RECEIVE_BYTES))
        self._handshake()

    def readable(self) -> bool:
        return True

    def send(self, data: bytes) -> None:
        self._tls.write(data)
        self._flush()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill buffer as far as one receive reaches; 0 at the end of the stream."""
        view = memoryview(buffer)
        read, size, done = self._tls.read, len(view), 0
        while done < size:
            try:
                # With a buffer to fill, SSLObject.read returns how much it put there.
                count = cast("int", read(size - done, view[done:]))
            except ssl.SSLWantReadError:
                if done:
                    return done
                self._receive()
                continue
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return done
            if not count:
                return done
            done += count
        return done

    def _handshake(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._receive()
            else:
                self._flush()
                return

    def _receive(self) -> None:
        count = self._socket.recv_into(self._received)
        if count:
            self._incoming.write(self._received[:count])
        else:
            self._incoming.write_eof()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._socket.sendall(self._outgoing.read())


def tls_context() -> ssl.SSLContext:
    """The context for the account: the machine's certificates, a private CA, or certifi's.

    A relocatable Python may come without certificates of its own, and a scratch image has none.
    """
    private = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    context = ssl.create_default_context(cafile=private or None)
    if not private and not context.cert_store_stats()["x509_ca"] and not os.environ.get("SSL_CERT_DIR"):
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def _request_bytes(target: str, host: str, headers: dict[str, str]) -> bytes:
    lines = [f"GET {target} HTTP/1.1", f"Host: {host}", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header holds a line break")
    return "\r\n".join(lines).encode("latin-1")
