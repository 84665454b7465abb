"""A web server on loopback for files to download, which can cut them short."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Mapping
from typing import Final, Self

LOOPBACK: Final = "127.0.0.1"


class FileServer:
    """Serves the bodies by path, for the length of a with block.

    Args:
        bodies: by path, with its slash.
        held_back: so many bytes of the end of each are announced and never sent.
    """

    def __init__(self, bodies: Mapping[str, bytes], held_back: int = 0) -> None:
        self.bodies = bodies
        self.held_back = held_back
        self.asked: list[str] = []
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}{path}"


class _Server(http.server.ThreadingHTTPServer):
    def __init__(self, files: FileServer) -> None:
        self.files = files
        super().__init__((LOOPBACK, 0), _Handler)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """The server keeps its own record."""

    def do_GET(self) -> None:
        files = self.server.files
        files.asked.append(self.path)
        body = files.bodies.get(self.path.partition("?")[0])
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) - files.held_back])
