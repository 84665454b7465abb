"""A small Blob endpoint of the tests' own: honest unless scripted, and it remembers every request."""

from __future__ import annotations

import shutil
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote

from tests.lab.answers import Answer, Request, honest_answer
from tests.lab.blob_server import LOOPBACK, BlobServer, Exchange
from tests.lab.certificate import make_certificate
from tests.lab.stored_blobs import PAGE_BLOBS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.lab.faults import Fault
    from tests.lab.stored_blobs import StoredBlob

ACCOUNT: Final = "faultaccount"
CONTAINER: Final = "data"


class FaultAccount:
    """An account with one container, `data`, for the length of a with block.

    Args:
        blobs: by name within the container; may be changed while it runs.
        faults: the first one that matches and is not used up changes the answer.
        tls: https with a certificate made for this account; see `trust`.
        page_blobs: at most so many blobs on a page of the listing.
        address: where it listens, in the network namespace of the thread that makes it.
    """

    def __init__(
        self,
        blobs: Mapping[str, StoredBlob],
        faults: Sequence[Fault] = (),
        *,
        tls: bool = False,
        page_blobs: int = PAGE_BLOBS,
        address: str = LOOPBACK,
    ) -> None:
        self.blobs = dict(blobs)
        self.page_blobs = page_blobs
        self._faults = [(fault, _Count()) for fault in faults]
        self._exchanges: list[Exchange] = []
        self._lock = threading.Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="azcp-lab-tls-")) if tls else None
        self.certificate = make_certificate(self._folder) if self._folder else None
        self._server = BlobServer(self._answer, self._record, self.certificate, address)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
        self._thread.join()
        if self._folder:
            shutil.rmtree(self._folder)

    def url(self, path: str = CONTAINER) -> str:
        """Address of "data" or "data/prefix"."""
        scheme = "https" if self.certificate else "http"
        return f"{scheme}://{self._server.authority}/{ACCOUNT}/{quote(path)}"

    @property
    def trust(self) -> dict[str, str]:
        """Environment under which OpenSSL and requests trust this account."""
        if not self.certificate:
            return {}
        return dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), str(self.certificate))

    def script(self, fault: Fault) -> None:
        """One more fault, after those that are there."""
        with self._lock:
            self._faults.append((fault, _Count()))

    def exchanges(self) -> list[Exchange]:
        """Everything that was answered so far."""
        with self._lock:
            return list(self._exchanges)

    def reads(self, name: str | None = None) -> list[Exchange]:
        """The requests for bytes, of one blob or of all."""
        return [
            exchange
            for exchange in self.exchanges()
            if exchange.request.is_blob_read and name in {None, exchange.request.name}
        ]

    def served_bytes(self) -> int:
        """Body bytes of blobs that left the account, errors not counted."""
        return sum(exchange.sent_bytes for exchange in self.reads() if exchange.status in {200, 206})

    def _answer(self, request: Request) -> Answer:
        """The honest answer, changed by the first fault that applies."""
        blobs = self.blobs if request.container == CONTAINER else {}
        honest = honest_answer(request, blobs, self.page_blobs)
        with self._lock:
            fault = next((fault for fault, used in self._faults if used.take(fault, request)), None)
        return fault.what(honest) if fault else honest

    def _record(self, exchange: Exchange) -> None:
        """Remember it for the asserts."""
        with self._lock:
            self._exchanges.append(exchange)


@dataclass
class _Count:
    """How many requests a fault has seen."""

    seen: int = 0

    def take(self, fault: Fault, request: Request) -> bool:
        if not fault.when(request):
            return False
        self.seen += 1
        return fault.after < self.seen <= fault.after + fault.times
