"""A reverse proxy before a Blob endpoint that counts what the account really served."""

from __future__ import annotations

import http.client
import http.server
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

LOOPBACK: Final = "127.0.0.1"
DATA: Final = {200, 206}
PIECE_BYTES: Final = 256 << 10
# Both ends of this proxy have their own idea of the connection.
HOP_BY_HOP: Final = {"connection", "keep-alive", "transfer-encoding"}


@dataclass
class Served:
    """One answer; `body_bytes` counts what passes through, before the client can have it."""

    method: str
    path: str
    is_blob: bool
    status: int
    body_bytes: int = 0


class CountingProxy:
    """Passes everything on to `upstream`, "http://HOST:PORT/ACCOUNT", for the length of a with block."""

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        self.upstream = parts.netloc
        self._served: list[Served] = []
        self._lock = threading.Lock()
        self._server = _Server(self)
        self.endpoint = f"http://{LOOPBACK}:{self._server.server_address[1]}{parts.path}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def blob_bytes(self) -> int:
        """Body bytes of all reads of blobs, errors not counted."""
        return sum(self.bytes_by_path().values())

    def bytes_by_path(self) -> Counter[str]:
        """Body bytes of the reads of each blob."""
        counts: Counter[str] = Counter()
        for served in self._snapshot():
            if served.is_blob and served.method == "GET" and served.status in DATA:
                counts[served.path] += served.body_bytes
        return counts

    def statuses(self) -> Counter[int]:
        """How many answers had each status."""
        return Counter(served.status for served in self._snapshot())

    def listings(self) -> int:
        """How many pages of List Blobs were asked for."""
        return sum(not served.is_blob for served in self._snapshot())

    def add(self, served: Served) -> None:
        """Count one answer."""
        with self._lock:
            self._served.append(served)

    def _snapshot(self) -> list[Served]:
        with self._lock:
            return list(self._served)


class _Server(http.server.ThreadingHTTPServer):
    block_on_close = False
    request_queue_size = 256

    def __init__(self, proxy: CountingProxy) -> None:
        self.proxy = proxy
        super().__init__((LOOPBACK, 0), _Handler)

    def handle_error(self, *_: object) -> None:
        """A client that went away is no news: the tests kill them."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.upstream = http.client.HTTPConnection(self.server.proxy.upstream)

    def finish(self) -> None:
        self.upstream.close()
        super().finish()

    def log_message(self, *_: object) -> None:
        """The proxy keeps its own record."""

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        self.upstream.request(self.command, self.path, body or None, headers)
        response = self.upstream.getresponse()
        parts = urlsplit(self.path)
        served = Served(self.command, parts.path, "comp" not in parse_qs(parts.query), response.status)
        self.server.proxy.add(served)
        self._relay(response, served)

    def _relay(self, response: http.client.HTTPResponse, served: Served) -> None:
        # Azurite lists in chunked encoding, which has been taken off here.
        listing = response.read() if response.length is None else None
        headers = [pair for pair in response.getheaders() if pair[0].lower() not in HOP_BY_HOP]
        if listing is not None:
            headers.append(("Content-Length", str(len(listing))))
        lines = [
            f"HTTP/1.1 {response.status} {response.reason}",
            *(f"{name}: {value}" for name, value in headers),
        ]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        if listing is not None:
            self.wfile.write(listing)
            return
        while piece := response.read(PIECE_BYTES):
            served.body_bytes += len(piece)
            self.wfile.write(piece)

    do_GET = do_HEAD = do_PUT = _pass_on  # noqa: N815 - the names that http.server looks for
