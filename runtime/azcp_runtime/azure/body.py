"""Ranges of blobs, read into the caller's buffer.

azure-core's pipeline decides on credentials, headers and retries; the transport at its end is our
own and puts the body where it is wanted. azure-storage-blob would join it into a new bytes object.
"""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlsplit

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.core.pipeline import Pipeline, PipelineRequest
from azure.core.pipeline.policies import SansIOHTTPPolicy, UserAgentPolicy
from azure.core.rest import HttpRequest
from azure.core.utils import case_insensitive_dict

from azcp_runtime import __version__
from azcp_runtime.azure.credential import Secret, asker_of, auth_policy
from azcp_runtime.azure.holder import Holder
from azcp_runtime.azure.passage import GatePolicy
from azcp_runtime.azure.refusals import CARRY_ON, read_refusal, refusal
from azcp_runtime.azure.retry import BodyRetryPolicy, Retries, RetryLimits
from azcp_runtime.azure.wire import Head, Wire, WireError, tls_context
from azcp_runtime.contract import CredentialEndedError, DownloadError
from azcp_runtime.engine.gate import Gate
from azcp_runtime.source.listing import Entry
from azcp_runtime.source.location import BlobLocation
from azcp_runtime.source.names import shown
from azcp_runtime.source.shardlist import http_date

SERVICE_VERSION: Final = "2023-11-03"
"""x-ms-version of our requests; all they need is older."""

_OK, _PARTIAL = 200, 206
_CONTENT_RANGE: Final = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)")


@dataclass(slots=True)
class Sink:
    """Where one range goes and how much of it is there; survives the retries of its request."""

    blob: Entry
    offset: int
    view: memoryview
    filled: int = 0

    @property
    def start(self) -> int:
        """The first byte still missing."""
        return self.offset + self.filled

    @property
    def end(self) -> int:
        """The byte after the range."""
        return self.offset + len(self.view)


class BodyReader:
    """Reads ranges of the blobs of one location; safe to share among threads.

    Args:
        location: container and prefix.
        secret: the credential.
        limits: when to give up.
        retries: where retries are counted.
        stop: set when the run is over.
        gate: what each request passes; one of its own where it is None.
        holder: who renews the secret; None for this process itself.

    Attributes:
        arrived_bytes: bytes of bodies so far, whole ranges or not.
    """

    def __init__(
        self,
        location: BlobLocation,
        secret: Secret,
        limits: RetryLimits,
        retries: Retries,
        stop: threading.Event,
        gate: Gate | None = None,
        holder: Holder | None = None,
    ) -> None:
        gate = gate or Gate(stop)
        self._base = f"{location.account_url}/{quote(location.container)}/{quote(location.prefix, safe='~/')}"
        self._asker = asker_of(location, secret)
        auth = auth_policy(secret, location.account, holder)
        policies = [
            UserAgentPolicy(f"azcp-distribute/{__version__}"),
            BodyRetryPolicy(limits, retries, gate, lambda: self.arrived_bytes + gate.accepted_by_all),
            GatePolicy(gate),
            _RangePolicy(),
            *([auth] if auth else []),
        ]
        self.arrived_bytes = 0
        self._transport = _SlotTransport(location.account_url, self._arrived)
        transport: Any = self._transport
        self._pipeline = Pipeline[HttpRequest, _Response](transport, policies)

    def close(self) -> None:
        """Close the connections of all threads; none of them may read any more."""
        self._transport.close()

    def _arrived(self, count: int) -> None:
        # Threads may lose an addition; the sum only has to change when bytes come.
        self.arrived_bytes += count

    def read(self, blob: Entry, offset: int, into: memoryview) -> None:
        """Fill ``into`` with the blob's bytes from offset on.

        Raises:
            DownloadError: the blob changed, is gone or refused, or the retries are used up.
            CredentialEndedError: there is no token, or the SAS has ended, and nothing replaces it.
        """
        sink = Sink(blob, offset, into)
        request = HttpRequest("GET", f"{self._base}{quote(blob.name, safe='~/')}")
        try:
            response = self._pipeline.run(request, sink=sink).http_response
        except ClientAuthenticationError as error:
            raise CredentialEndedError(
                f"no token for {self._asker.kind} any more: {_first_line(error)}",
                remedy=f"check the identity; {CARRY_ON}",
            ) from None
        except AzureError as error:
            raise DownloadError(f"cannot read {_where(sink)}: {_first_line(error)}") from None
        if sink.filled < len(into):
            refused = read_refusal(response.status_code, response.headers, response.text())
            raise refusal(shown(blob.name), refused, self._asker)


class _RangePolicy(SansIOHTTPPolicy[HttpRequest, Any]):
    """Headers of each try: the bytes still missing, and the ETag that they must belong to."""

    def on_request(self, request: PipelineRequest[HttpRequest]) -> None:
        sink: Sink = request.context.options["sink"]
        headers = request.http_request.headers
        headers["x-ms-version"] = SERVICE_VERSION
        headers["x-ms-date"] = formatdate(usegmt=True)
        headers["x-ms-range"] = f"bytes={sink.start}-{sink.end - 1}"
        headers["Accept-Encoding"] = "identity"
        if sink.blob.etag:
            headers["If-Match"] = sink.blob.etag
        elif sink.blob.modified:
            headers["If-Unmodified-Since"] = http_date(sink.blob.modified)


class _Response:
    """What azure-core's policies ask of a response; the body is already in the sink."""

    def __init__(self, request: HttpRequest, head: Head, body: bytes) -> None:
        self.request = request
        self.status_code = head.status
        self.reason = head.reason
        self.headers = case_insensitive_dict(head.headers)
        self._body = body

    def text(self) -> str:
        """The body of an error."""
        return self._body.decode("utf-8", "replace")


class _SlotTransport:
    """The end of the pipeline: one connection a thread, bodies straight into the sink's buffer."""

    def __init__(self, account_url: str, arrived: Callable[[int], None]) -> None:
        self._arrived = arrived
        url = urlsplit(account_url)
        self._endpoint = f"{url.scheme}://{url.netloc}"
        self._tls: ssl.SSLContext | None = tls_context() if url.scheme == "https" else None
        self._thread = threading.local()
        self._wires: list[Wire] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every thread's connection."""
        for wire in self._wires:
            wire.close()

    def send(self, request: HttpRequest, *, sink: Sink, **_options: object) -> _Response:
        """One exchange; raises azure-core's errors, which its retry policy sorts."""
        wire = self._wire()
        url = urlsplit(request.url)
        target = url.path + (f"?{url.query}" if url.query else "")
        try:
            head = wire.get(target, dict(request.headers))
        except WireError as error:
            if isinstance(error.__cause__, ssl.SSLCertVerificationError):
                raise DownloadError(
                    f"the certificate of {url.hostname} is not trusted: {error.__cause__.verify_message}",
                    remedy="set SSL_CERT_FILE or REQUESTS_CA_BUNDLE to the CA's bundle",
                ) from None
            kind = ServiceResponseError if error.reached else ServiceRequestError
            raise kind(f"{type(error.__cause__).__name__}: {error.__cause__}") from None
        if head.status in (_OK, _PARTIAL):
            return self._receive(wire, request, head, sink)
        body = head.read_small()
        if head.will_close or not head.is_spent:
            wire.close()
        return _Response(request, head, body)

    def _receive(self, wire: Wire, request: HttpRequest, head: Head, sink: Sink) -> _Response:
        try:
            expected = expected_bytes(head.status, head.headers, head.length, sink)
        except (AzureError, DownloadError):
            wire.close()
            raise
        count = head.read_into(sink.view[sink.filled : sink.filled + expected], self._arrived)
        sink.filled += count
        if count < expected or head.will_close:
            wire.close()
        if sink.filled < len(sink.view):
            raise ServiceResponseError(
                f"the body ended after {count} of {sink.end - sink.start + count} bytes"
            )
        return _Response(request, head, b"")

    def _wire(self) -> Wire:
        wire = getattr(self._thread, "wire", None)
        if wire is None:
            wire = self._thread.wire = Wire(self._endpoint, self._tls)
            self._wires.append(wire)
        return wire


def expected_bytes(status: int, headers: dict[str, str], length: int | None, sink: Sink) -> int:
    """How much of the missing range a response carries; it may be honest about carrying less.

    Raises:
        DownloadError: the answer is for other bytes, another size or another version of the blob.
        ServiceResponseError: the answer contradicts itself; worth another try.
    """
    fields = case_insensitive_dict(headers)
    etag = fields.get("ETag", "")
    if sink.blob.etag and etag and etag != sink.blob.etag:
        raise DownloadError(
            f"{shown(sink.blob.name)} changed while it was distributed (ETag {sink.blob.etag}, now {etag})",
            remedy="run again when nobody writes to it",
        )
    if status == _OK:
        first, last, total = 0, sink.blob.size - 1, str(sink.blob.size)
        if sink.start or sink.end != sink.blob.size:
            raise DownloadError(f"the endpoint ignores ranges: 200 instead of 206 for {_where(sink)}")
    else:
        match = _CONTENT_RANGE.fullmatch(fields.get("Content-Range", ""))
        if not match:
            raise ServiceResponseError(f"206 without a Content-Range for {_where(sink)}")
        first, last, total = int(match[1]), int(match[2]), match[3]
    if total not in ("*", str(sink.blob.size)):
        raise DownloadError(f"{shown(sink.blob.name)} has {total} bytes, listed were {sink.blob.size}")
    if first != sink.start or not first <= last < sink.end or length != last - first + 1:
        raise ServiceResponseError(f"bytes {first}-{last} ({length}) answered for {_where(sink)}")
    return length


def _where(sink: Sink) -> str:
    return f"bytes {sink.start}-{sink.end - 1} of {shown(sink.blob.name)}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
