"""Pages of a listing without the SDK's parser, which takes ten times the CPU: 25 s for 100,000 blobs.

The SDK still asks, signs, waits, tries again and follows the markers. Its transport is wrapped: of a page the
blobs are read here, and cut out of what the SDK gets to see. A page of another form is left to the SDK whole.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final, Self
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from azure.core.pipeline.transport import HttpTransport, RequestsTransport

from azcp_runtime.contract import ListError
from azcp_runtime.source.listing import MD5_BYTES, Entry
from azcp_runtime.source.names import shown

_OK: Final = 200
_BEGIN: Final = b"<Blobs>"
_END: Final = b"</Blobs>"
FOLDER_MARK: Final = "hdi_isfolder"


class PageTransport(HttpTransport[Any, Any]):
    """The SDK's transport to the account, with the blobs of each page taken out.

    Args:
        prefix: the source's, which names are cut by.
        connect_s: how long a connection may take.
        read_s: how long the account may be silent.
    """

    def __init__(self, prefix: str, connect_s: float, read_s: float) -> None:
        self._sdk = RequestsTransport(connection_timeout=connect_s, read_timeout=read_s)
        self._prefix = prefix
        self._page: bytes | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Open the SDK's."""
        self._sdk.open()

    def close(self) -> None:
        """Close the SDK's."""
        self._sdk.close()

    def send(self, request: Any, **options: Any) -> Any:  # noqa: ANN401 - the SDK's requests share no base
        """The answer; of a page what remains without its blobs."""
        response = self._sdk.send(request, **options)
        self._page = None
        body = response.body() if response.status_code == _OK else b""
        first, last = body.find(_BEGIN), body.rfind(_END)
        if first < 0 or last < first:
            return response
        self._page = body[first : last + len(_END)]
        return _Shortened(response, body[:first] + _BEGIN + body[last:])

    def take(self) -> Iterator[Entry]:
        """The blobs of the last page; raises what an XML parser or a wrong value raises."""
        page, self._page = self._page, None
        return read_page(page, self._prefix) if page else iter(())


class _Shortened:
    """A response with another body."""

    def __init__(self, response: Any, body: bytes) -> None:  # noqa: ANN401 - the SDK's responses share no base
        self._response = response
        self.content = body

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the response has
        return getattr(self._response, name)

    def body(self) -> bytes:
        """All of it."""
        return self.content

    def read(self) -> bytes:
        """All of it."""
        return self.content

    def text(self, encoding: str | None = None) -> str:
        """All of it; a page is UTF-8, with a mark of that or without."""
        return self.content.decode(encoding or "utf-8-sig").removeprefix("\ufeff")


def read_page(blobs: bytes, prefix: str) -> Iterator[Entry]:
    """The entries of a page's ``<Blobs>`` element, names cut by the prefix.

    Raises:
        ListError: an ETag is none.
        ValueError: a size, a date or a name is none; ParseError: it is no XML.
    """
    cut = len(prefix)
    for blob in ET.fromstring(blobs):  # noqa: S314 - no document type, so no entity can grow
        if blob.tag == "Blob":
            yield _entry(blob, cut)


def _entry(blob: ET.Element, cut: int) -> Entry:
    found = {field.tag: field.text or "" for field in blob.find("Properties") or ()}
    name = _name(blob.find("Name"))[cut:].encode("utf-8", "surrogatepass")
    md5 = binascii.a2b_base64(found.get("Content-MD5", ""))
    return Entry(
        name,
        _size(found["Content-Length"]),
        etag=quoted_etag(name, found.get("Etag", "")),
        modified=_seconds(found.get("Last-Modified", "")),
        md5=md5 if len(md5) == MD5_BYTES else b"",
        tier=found.get("AccessTier", ""),
        is_folder=_is_folder(blob.find("Metadata")),
    )


def quoted_etag(name: bytes, etag: str) -> str:
    """A blob's ETag as requests carry it: quoted (RFC 9110, 8.8.3), where listings give it bare.

    Raises:
        ListError: it is none.
    """
    etag = etag.strip('"')
    if not etag.isascii() or not etag.isprintable():
        raise ListError(f"the ETag of {shown(name)} is none")
    return f'"{etag}"' if etag else ""


def _name(element: ET.Element | None) -> str:
    """Names that XML cannot hold come percent-encoded, and say so."""
    if element is None or not element.text:
        raise ValueError("a blob without a name")
    return unquote(element.text, errors="strict") if element.get("Encoded") == "true" else element.text


def _size(digits: str) -> int:
    if not digits.isascii() or not digits.isdecimal():
        raise ValueError("a size that is none")
    return int(digits)


@lru_cache(maxsize=4096)  # a data set is often uploaded within few seconds
def _seconds(date: str) -> int:
    return int(parsedate_to_datetime(date).timestamp()) if date else 0


def _is_folder(metadata: ET.Element | None) -> bool:
    return any(
        field.tag.lower() == FOLDER_MARK and (field.text or "").lower() == "true"
        for field in (() if metadata is None else metadata)
    )
