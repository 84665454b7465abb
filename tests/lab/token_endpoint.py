"""Identities of the tests' own: endpoints that hand out bearer tokens and count them.

One server is App Service's managed identity, a machine's metadata service, and, with a certificate,
the authority that trades the assertion of a workload identity.
"""

from __future__ import annotations

import http.server
import json
import threading
import time
from enum import Enum
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import parse_qs, urlsplit

from tests.lab.certificate import server_context
from tests.lab.faults import Fault, unauthorized

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.lab.answers import Request
    from tests.lab.faults import Condition

LOOPBACK: Final = "127.0.0.1"
HEADER: Final = "a secret of the endpoint"
RESOURCE: Final = "https://storage.azure.com"
CLIENT: Final = "11111111-1111-4111-8111-111111111111"
TENANT: Final = "22222222-2222-4222-8222-222222222222"
METADATA_PATH: Final = "/metadata/identity/oauth2/token"


class Broken(Enum):
    """How an endpoint answers that is none."""

    SILENT = "silent"
    RESET = "reset"
    NO_JSON = "no json"


class TokenEndpoint:
    """Plain http, or https with a certificate, for the length of a with block.

    Args:
        life_s: how long each token is valid, in whole seconds.
        delay_s: how long each answer takes, so that requests meet if they can.
        first: statuses of the metadata service's first answers, before it has a token.
        certificate: for https.
        skew_s: how far its clock is ahead of the account's and of this machine's.
        broken: how it answers, if not as an endpoint: Broken.SILENT never, Broken.RESET by closing the
            connection, Broken.NO_JSON with what a captive portal says.
    """

    def __init__(
        self,
        life_s: int = 3600,
        delay_s: float = 0.0,
        first: Sequence[int] = (),
        certificate: Path | None = None,
        skew_s: float = 0.0,
        broken: Broken | None = None,
    ) -> None:
        self.life_s = life_s
        self.delay_s = delay_s
        self.skew_s = skew_s
        self.broken = broken
        self.refuses = False
        self.assertions: list[str] = []
        self._first = list(first)
        self._lock = threading.Lock()
        self._ends: dict[str, float] = {}
        self._revoked: set[str] = set()
        self._asking = self._most_asking = self._requests = 0
        self._released = threading.Event()
        self._server = _Server(self)
        if certificate:
            context = server_context(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
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
        return {"IDENTITY_ENDPOINT": f"http://{self.authority}/token", "IDENTITY_HEADER": HEADER}

    @property
    def authority(self) -> str:
        """Host and port."""
        return f"{LOOPBACK}:{self._server.server_address[1]}"

    @property
    def metadata_env(self) -> dict[str, str]:
        """Environment under which it is the machine's metadata service."""
        return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": f"http://{self.authority}"}

    def workload_env(self, token_file: Path) -> dict[str, str]:
        """Environment of a pod with workload identity, whose authority it is."""
        return {
            "AZURE_AUTHORITY_HOST": f"https://{self.authority}",
            "AZURE_TENANT_ID": TENANT,
            "AZURE_CLIENT_ID": CLIENT,
            "AZURE_FEDERATED_TOKEN_FILE": str(token_file),
        }

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

    def answer(self, query: Mapping[str, list[str]], header: str) -> tuple[int, dict[str, str]]:
        """Status and JSON of one request as App Service gets it."""
        self._meet()
        with self._lock:
            if self.refuses or header != HEADER or query.get("resource") != [RESOURCE]:
                return 400, {"statusCode": "400", "message": "no such identity"}
            token, ends = self._new()
            told = str(int(ends + self.skew_s))
            return 200, {"access_token": token, "expires_on": told, "token_type": "Bearer"}

    def metadata(self, query: Mapping[str, list[str]], header: str) -> tuple[int, dict[str, str]]:
        """Status and JSON of one request to the metadata service."""
        self._meet()
        with self._lock:
            if header != "true" or query.get("resource") != [RESOURCE]:
                return 400, {"error": "invalid_request", "error_description": "Required header missing"}
            if self._first:
                return self._first.pop(0), {"error": "busy"}
            if self.refuses or query.get("client_id", [CLIENT]) != [CLIENT]:
                return 400, {"error": "invalid_request", "error_description": "Identity not found"}
            token, _ = self._new()
            life = str(self.life_s)
            return 200, {"access_token": token, "expires_in": life, "resource": RESOURCE}

    def exchange(self, form: Mapping[str, list[str]]) -> tuple[int, dict[str, str]]:
        """Status and JSON of one request to the authority."""
        self._meet()
        with self._lock:
            self.assertions += form.get("client_assertion", [])
            if self.refuses or form.get("client_id") != [CLIENT]:
                return 401, {"error": "invalid_client", "error_description": "AADSTS700024: assertion"}
            token, _ = self._new()
            return 200, {"access_token": token, "expires_in": str(self.life_s), "token_type": "Bearer"}

    def wait_for_the_end(self) -> None:
        """Return when the block ends."""
        self._meet()
        self._released.wait()

    def _meet(self) -> None:
        with self._lock:
            self._requests += 1
            self._asking += 1
            self._most_asking = max(self._asking, self._most_asking)
        self._released.wait(self.delay_s)
        with self._lock:
            self._asking -= 1

    def _new(self) -> tuple[str, int]:
        token, ends = f"token-{len(self._ends)}", int(time.time()) + self.life_s
        self._ends[token] = ends
        return token, ends


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

    def handle_one_request(self) -> None:
        broken = self.server.endpoint.broken
        if broken is None:
            super().handle_one_request()
            return
        self.close_connection = True
        if broken is Broken.SILENT:
            self.server.endpoint.wait_for_the_end()
        elif broken is Broken.NO_JSON:
            self.rfile.readline()
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>")

    def do_GET(self) -> None:
        url, endpoint = urlsplit(self.path), self.server.endpoint
        if url.path == METADATA_PATH:
            self._send(*endpoint.metadata(parse_qs(url.query), self.headers.get("Metadata", "")))
        else:
            self._send(*endpoint.answer(parse_qs(url.query), self.headers.get("X-IDENTITY-HEADER", "")))

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self._send(*self.server.endpoint.exchange(parse_qs(form)))

    def _send(self, status: int, content: dict[str, str]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
