"""A managed identity of the tests' own: an endpoint that hands out bearer tokens and counts them."""

from __future__ import annotations

import http.server
import json
import threading
import time
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import parse_qs, urlsplit

from tests.lab.faults import Fault, unauthorized

if TYPE_CHECKING:
    from tests.lab.answers import Request
    from tests.lab.faults import Condition

LOOPBACK: Final = "127.0.0.1"
HEADER: Final = "a secret of the endpoint"
RESOURCE: Final = "https://storage.azure.com"


class TokenEndpoint:
    """App Service's managed identity, plain http as there, for the length of a with block.

    Args:
        life_s: how long each token is valid, in whole seconds.
        delay_s: how long each answer takes, so that requests meet if they can.
    """

    def __init__(self, life_s: int = 3600, delay_s: float = 0.0) -> None:
        self.life_s = life_s
        self.delay_s = delay_s
        self.refuses = False
        self._lock = threading.Lock()
        self._ends: dict[str, float] = {}
        self._revoked: set[str] = set()
        self._asking = self._most_asking = self._requests = 0
        self._released = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def env(self) -> dict[str, str]:
        """Environment under which azure-identity asks here."""
        address = f"http://{LOOPBACK}:{self._server.server_address[1]}/token"
        return {"IDENTITY_ENDPOINT": address, "IDENTITY_HEADER": HEADER}

    @property
    def requests(self) -> int:
        """How many requests came in."""
        with self._lock:
            return self._requests

    @property
    def most_at_once(self) -> int:
        """How many requests were there at the same time, at most."""
        with self._lock:
            return self._most_asking

    def revoke(self) -> None:
        """Let no token that was given out until now be valid any more."""
        with self._lock:
            self._revoked.update(self._ends)

    def accepts(self, request: Request) -> bool:
        """Whether a request to the account bears a valid token."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        with self._lock:
            return token not in self._revoked and time.time() < self._ends.get(token, 0.0)

    def guard(self, when: Condition = lambda _: True, times: int = 1 << 62) -> Fault:
        """A fault for the account: 401 to whoever bears no valid token."""
        return Fault(unauthorized(), lambda request: when(request) and not self.accepts(request), times)

    def answer(self, query: dict[str, list[str]], header: str) -> tuple[int, dict[str, str]]:
        """Status and JSON of one request."""
        with self._lock:
            self._requests += 1
            self._asking += 1
            self._most_asking = max(self._asking, self._most_asking)
        self._released.wait(self.delay_s)
        with self._lock:
            self._asking -= 1
            if self.refuses or header != HEADER or query.get("resource") != [RESOURCE]:
                return 400, {"statusCode": "400", "message": "no such identity"}
            token, ends = f"token-{len(self._ends)}", int(time.time()) + self.life_s
            self._ends[token] = ends
            return 200, {"access_token": token, "expires_on": str(ends), "token_type": "Bearer"}


class _Server(http.server.ThreadingHTTPServer):
    block_on_close = False
    request_queue_size = 256

    def __init__(self, endpoint: TokenEndpoint) -> None:
        self.endpoint = endpoint
        super().__init__((LOOPBACK, 0), _Handler)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """The endpoint counts by itself."""

    def do_GET(self) -> None:
        header = self.headers.get("X-IDENTITY-HEADER", "")
        status, content = self.server.endpoint.answer(parse_qs(urlsplit(self.path).query), header)
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
