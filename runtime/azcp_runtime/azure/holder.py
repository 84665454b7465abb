"""What a rank holds to read with, a token or a SAS, and how another one is had when it is refused."""

from __future__ import annotations

import math
import re
import threading
import time
from pathlib import Path
from typing import Any, Final, Protocol

from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import HTTPPolicy
from azure.core.rest import HttpRequest

from azcp_runtime.contract import UsageError
from azcp_runtime.scrub import hide

_FORBIDDEN: Final = 403
_PAUSE_S: Final = 10.0
_QUOTES: Final = frozenset("\"'")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[^=?&]+\?")
"""What comes before the query: with a scheme, or only a host and a path."""


class Holder(Protocol):
    """Holds one secret at a time for all threads of a rank."""

    def current(self) -> str:
        """The secret; raises AzureError where it has ended and there is no other."""

    def another(self, refused: str, tenant: str = "") -> str:
        """Another secret than the refused one, or that again where there is no other."""

    def left_s(self) -> float:
        """For how many seconds it is valid, as far as that is known."""

    def renew_in_s(self) -> float:
        """In how many seconds it is time for the next one."""


class HeldSas:
    """A SAS; where it came out of a file, that is read again when the SAS is refused.

    Args:
        sas: the SAS.
        file: where it came from; None for one that is never renewed.
    """

    def __init__(self, sas: str, file: Path | None = None) -> None:
        self._sas = sas
        self._file = file
        self._lock = threading.Lock()
        self._vain_until = 0.0

    def current(self) -> str:
        """The SAS."""
        return self._sas

    def another(self, refused: str, tenant: str = "") -> str:  # noqa: ARG002 - only tokens are a tenant's
        """What the file says now."""
        with self._lock:
            if self._sas != refused or self._file is None or time.monotonic() < self._vain_until:
                return self._sas
            try:
                # Nobody may be left to write to a pipe, and the read would never end.
                found = read_sas(self._file) if self._file.is_file() else refused
            except UsageError:  # it is being replaced, or gone: the refusal says what is wrong
                found = refused
            if found in ("", refused):
                # Not every thread needs to look.
                self._vain_until = time.monotonic() + _PAUSE_S
            else:
                hide(found)
                self._sas = found
            return self._sas

    def left_s(self) -> float:
        """It is used until it is refused."""
        return math.inf

    def renew_in_s(self) -> float:
        """Never by time."""
        return math.inf


class SasPolicy(HTTPPolicy[HttpRequest, Any]):
    """Appends the held SAS to each request; after a 403 the request goes out once more with a new one."""

    def __init__(self, holder: Holder) -> None:
        super().__init__()
        self._holder = holder

    def send(self, request: PipelineRequest[HttpRequest]) -> PipelineResponse[HttpRequest, Any]:
        """The next policy's response."""
        sas = self._holder.current()
        response = self._sent(request, sas)
        if response.http_response.status_code != _FORBIDDEN:
            return response
        another = self._holder.another(sas)
        return response if another == sas else self._sent(request, another)

    def _sent(self, request: PipelineRequest[HttpRequest], sas: str) -> PipelineResponse[HttpRequest, Any]:
        address, _, _ = request.http_request.url.partition("?")
        request.http_request.url = f"{address}?{sas}"
        return self.next.send(request)


def read_sas(file: Path) -> str:
    """The SAS in a file; raises UsageError."""
    try:
        return checked_sas(file.read_text(encoding="ascii"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the SAS in {file}: {type(error).__name__}") from None


def checked_sas(text: str, source: str) -> str:
    """A SAS without what surrounds it.

    Args:
        text: what was given.
        source: where it was found, for messages, which never repeat the text.

    Raises:
        UsageError: it is none, or there is more around it than can be meant.
    """
    text = text.strip()
    if text and _QUOTES.intersection((text[0], text[-1])):
        raise UsageError(f"{source} has quotes around it", remedy="give the SAS without them")
    if _URL.match(text):
        raise UsageError(f"{source} is a URL", remedy="give only what follows the ?")
    text = text.lstrip("?")
    if text and ("sig=" not in text or any(c.isspace() or not c.isascii() for c in text)):
        raise UsageError("the SAS is malformed", cause="it has no sig= field, or white space within")
    return text
