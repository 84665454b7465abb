"""What the Blob service answers when nothing is wrong, as values: the faults begin from here."""

from __future__ import annotations

import enum
import re
import time
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.lab.stored_blobs import list_page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.lab.stored_blobs import StoredBlob

RANGE: Final = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass(frozen=True)
class Request:
    """One request as it came in; header names are in lower case, `at` is monotonic seconds."""

    method: str
    target: str
    headers: Mapping[str, str] = field(repr=False)
    at: float

    @property
    def query(self) -> dict[str, str]:
        """The parameters, decoded."""
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def container(self) -> str:
        """The second part of the path; the account is the first."""
        return self._path[1]

    @property
    def name(self) -> str:
        """The blob's name, decoded once; empty for a request about the container."""
        return unquote(self._path[2])

    @property
    def is_list(self) -> bool:
        """Whether it is List Blobs."""
        return self.query.get("comp") == "list"

    @property
    def is_blob_read(self) -> bool:
        """Whether it asks for bytes of a blob."""
        return self.method == "GET" and bool(self.name) and "comp" not in self.query

    @property
    def range(self) -> tuple[int, int | None] | None:
        """First and last byte asked for; the service prefers x-ms-range."""
        found = RANGE.fullmatch(self.headers.get("x-ms-range", self.headers.get("range", "")))
        return (int(found[1]), int(found[2]) if found[2] else None) if found else None

    @property
    def _path(self) -> list[str]:
        parts = urlsplit(self.target).path.lstrip("/").split("/", 2)
        return [*parts, "", ""][:3]


class Ending(enum.Enum):
    """What happens to the connection after the answer."""

    KEEP = enum.auto()
    CLOSE = enum.auto()
    RESET = enum.auto()


@dataclass(frozen=True)
class Answer:
    """An answer and the way it is delivered."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    send_bytes: int | None = None
    ending: Ending = Ending.KEEP
    silent: bool = False
    headless: bool = False
    chunked: bool = False
    bytes_per_s: float | None = None

    def with_headers(self, **changes: str) -> Answer:
        """A copy with other headers; underscores in the keyword stand for hyphens."""
        changed = {name.replace("_", "-"): value for name, value in changes.items()}
        return replace(self, headers=dict(self.headers) | changed)

    def without_headers(self, *names: str) -> Answer:
        """A copy that lacks these headers."""
        return replace(
            self, headers={name: value for name, value in self.headers.items() if name not in names}
        )


def honest_answer(request: Request, blobs: Mapping[str, StoredBlob], page_blobs: int) -> Answer:
    """The right answer; `blobs` are those of the request's container."""
    if request.is_list:
        headers = {"Content-Type": "application/xml"}
        return _answer(200, headers, list_page(blobs, request.query, page_blobs))
    if not request.name:
        return _answer(200, {}, b"")
    if request.name not in blobs:
        return error_answer(404, "BlobNotFound", "The specified blob does not exist.")
    return _blob_answer(request, blobs[request.name])


def error_answer(status: int, code: str, message: str, detail: str = "") -> Answer:
    """An error as the service words it."""
    detail = f"<AuthenticationErrorDetail>{detail}</AuthenticationErrorDetail>" if detail else ""
    text = f"<Error><Code>{code}</Code><Message>{message}</Message>{detail}</Error>"
    body = '<?xml version="1.0" encoding="utf-8"?>' + text
    return _answer(status, {"Content-Type": "application/xml", "x-ms-error-code": code}, body.encode())


def _answer(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    common = {
        "Date": formatdate(time.time(), usegmt=True),
        "x-ms-request-id": "0",
        "x-ms-version": "2024-11-04",
    }
    return Answer(status, common | dict(headers) | {"Content-Length": str(len(body))}, body)


def _blob_answer(request: Request, blob: StoredBlob) -> Answer:
    if request.headers.get("if-match", "*").strip('"') not in {"*", blob.etag}:
        return error_answer(
            412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met."
        )
    headers = _blob_headers(blob)
    if request.method == "HEAD":
        return replace(_answer(200, headers, b""), headers=headers | {"Content-Length": str(blob.size)})
    if request.range is None:
        return _answer(200, headers | _md5_header("Content-MD5", blob), blob.read(0, blob.size))
    first, last = request.range
    if first >= blob.size:
        return error_answer(416, "InvalidRange", "The range specified is invalid for the current size.")
    body = blob.read(first, blob.size if last is None else last - first + 1)
    headers["Content-Range"] = f"bytes {first}-{first + len(body) - 1}/{blob.size}"
    return _answer(206, headers | _md5_header("x-ms-blob-content-md5", blob), body)


def _blob_headers(blob: StoredBlob) -> dict[str, str]:
    headers = {
        "ETag": f'"{blob.etag}"',
        "Last-Modified": blob.last_modified,
        "Content-Type": "application/octet-stream",
        "Accept-Ranges": "bytes",
        "x-ms-blob-type": "BlockBlob",
    }
    headers |= {f"x-ms-meta-{name}": value for name, value in blob.metadata.items()}
    return headers | ({"Content-Encoding": blob.content_encoding} if blob.content_encoding else {})


def _md5_header(name: str, blob: StoredBlob) -> dict[str, str]:
    return {name: blob.md5_text} if blob.content_md5 else {}
