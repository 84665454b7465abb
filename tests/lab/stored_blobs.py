"""Blobs as the account of the tests keeps them, and how a List Blobs page shows them."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote
from xml.sax.saxutils import escape

from tests.lab.content import Content

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.lab.dataset import DataSet

LAST_MODIFIED: Final = "Mon, 01 Jan 2024 00:00:00 GMT"
PAGE_BLOBS: Final = 5000
FIRST_XML_CHARACTER: Final = 0x20
# XML 1.0 cannot hold the rest, not even escaped; the service then percent-encodes the whole name.
LEGAL_BELOW_SPACE: Final = "\t\n\r"
ILLEGAL_ABOVE: Final = "\ufffe\uffff"


@dataclass(frozen=True)
class StoredBlob:
    """One blob; `content` is bytes as they are stored, encoded or not."""

    content: Content | bytes
    etag: str = "0x8DAAAAAAAAAAAAA"
    content_md5: bytes | None = None
    content_encoding: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    tier: str = "Hot"
    archive_status: str = ""
    last_modified: str = LAST_MODIFIED

    @property
    def size(self) -> int:
        """In bytes."""
        return self.content.size if isinstance(self.content, Content) else len(self.content)

    @property
    def md5_text(self) -> str:
        """The Content-MD5 header, empty where the blob has none."""
        return base64.b64encode(self.content_md5).decode() if self.content_md5 else ""

    def read(self, start: int, length: int) -> bytes:
        """A range of it, cut at its end."""
        if isinstance(self.content, Content):
            return self.content.read(start, length)
        return self.content[start : start + length]


def stored(data_set: DataSet, prefix: str = "", *, etag: str = "0x8DAAAAAAAAAAAAA") -> dict[str, StoredBlob]:
    """The data set as a single-shot upload would have stored it, with Content-MD5; no markers."""
    return {
        prefix + blob.name: StoredBlob(blob.content, etag, None if blob.in_blocks else blob.content.md5())
        for blob in data_set.blobs
    }


def list_page(
    blobs: Mapping[str, StoredBlob], query: Mapping[str, str], page_blobs: int = PAGE_BLOBS
) -> bytes:
    """One page of List Blobs; the marker is the first name of the next page, hidden from the client."""
    prefix = query.get("prefix", "")
    first = base64.urlsafe_b64decode(query.get("marker", "")).decode()
    names = sorted(name for name in blobs if name.startswith(prefix) and name >= first)
    size = min(int(query.get("maxresults", PAGE_BLOBS)), page_blobs)
    with_metadata = "metadata" in query.get("include", "").split(",")
    shown = "".join(_blob_element(name, blobs[name], with_metadata) for name in names[:size])
    following = names[size] if len(names) > size else ""
    marker = base64.urlsafe_b64encode(following.encode()).decode()
    # The client asks for its next page with what is repeated here.
    most = f"<MaxResults>{query['maxresults']}</MaxResults>" if "maxresults" in query else ""
    return (
        '<?xml version="1.0" encoding="utf-8"?><EnumerationResults>'
        f"<Prefix>{escape(prefix)}</Prefix>{most}<Blobs>{shown}</Blobs><NextMarker>{marker}</NextMarker>"
        "</EnumerationResults>"
    ).encode()


def _blob_element(name: str, blob: StoredBlob, with_metadata: bool) -> str:
    properties = {
        "Last-Modified": blob.last_modified,
        # Without the quotes that the header has.
        "Etag": blob.etag,
        "Content-Length": str(blob.size),
        "Content-Type": "application/octet-stream",
        "Content-Encoding": blob.content_encoding,
        "Content-MD5": blob.md5_text,
        "BlobType": "BlockBlob",
        "AccessTier": blob.tier,
    }
    if blob.archive_status:
        properties["ArchiveStatus"] = blob.archive_status
    metadata = f"<Metadata>{_elements(blob.metadata)}</Metadata>" if with_metadata else ""
    return f"<Blob>{_name_element(name)}<Properties>{_elements(properties)}</Properties>{metadata}</Blob>"


def _elements(values: Mapping[str, str]) -> str:
    return "".join(
        f"<{key}>{escape(value)}</{key}>" if value else f"<{key} />" for key, value in values.items()
    )


def _name_element(name: str) -> str:
    if any(_is_illegal(character) for character in name):
        return f'<Name Encoded="true">{quote(name)}</Name>'
    return f"<Name>{escape(name)}</Name>"


def _is_illegal(character: str) -> bool:
    control = ord(character) < FIRST_XML_CHARACTER and character not in LEGAL_BELOW_SPACE
    return control or character in ILLEGAL_ABOVE
