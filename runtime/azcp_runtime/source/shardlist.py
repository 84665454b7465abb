"""Listings as text: --shardlist, --filelist and --save-filelist.

One blob a line, ``name<TAB>size[<TAB>Last-Modified[<TAB>ETag]]``; a dash stands for an unknown
field. The first three columns are what azcp-cluster reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from functools import lru_cache
from pathlib import Path

from azcp_runtime.contract import ListError
from azcp_runtime.source.listing import Entry, Listing
from azcp_runtime.source.names import shown

_UNKNOWN = "-"
_MOST_DIGITS = 15
"""A blob has 190.7 TiB at most."""

_RELATIVE = "# azcp-distribute: names below the source's folder"


def read_shardlist(path: Path) -> Iterator[Entry]:
    """The entries of a list, in its order; comments, blank lines and folder rows are passed over.

    Raises:
        ListError: the file cannot be read, or a line has no size, or a date that is none.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise ListError(f"cannot read the list {path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        fields = line.rstrip(b"\r").split(b"\t")
        if not line.strip() or line.startswith(b"#"):
            continue
        if len(fields) < 2 or not fields[0]:  # noqa: PLR2004 - name and size
            raise ListError(f"{path}:{number}: needs a name, a tab and a size")
        if fields[1].strip() != b"-":  # which marks the folder rows of `azcp ls`
            yield _entry(fields, f"{path}:{number}")


def read_below(path: Path, prefix: str) -> list[Entry]:
    """The entries of a list, names cut to what follows the prefix.

    Our own lists say that their names are cut already. Others, such as azcp-cluster's, hold whole
    names; a list of which any name lacks the prefix is taken to be cut as well.

    Raises:
        ListError: as read_shardlist.
    """
    entries, start = list(read_shardlist(path)), prefix.encode()
    with path.open("rb") as opened:
        is_ours = opened.readline().rstrip() == _RELATIVE.encode()
    if is_ours or not start or not all(entry.name.startswith(start) for entry in entries):
        return entries
    return [replace(entry, name=entry.name[len(start) :]) for entry in entries]


def filelist_text(listing: Listing) -> tuple[str, int]:
    """The list of a finished run and how many names it could not hold (tab or newline in them)."""
    lines, left_out = [f"{_RELATIVE}\n"], 0
    for index, raw in enumerate(listing.names):
        if b"\t" in raw or b"\n" in raw or b"\r" in raw or raw.startswith(b"#"):
            left_out += 1
            continue
        name = raw.decode("utf-8", "surrogateescape")
        when = http_date(listing.modified[index]) if listing.modified[index] else _UNKNOWN
        etag = listing.etags[index].decode() or _UNKNOWN
        lines.append(f"{name}\t{listing.sizes[index]}\t{when}\t{etag}\n")
    return "".join(lines), left_out


def http_date(seconds: int) -> str:
    """Last-Modified as HTTP writes it (RFC 9110, 5.6.7)."""
    return format_datetime(datetime.fromtimestamp(seconds, UTC), usegmt=True)


def _entry(fields: list[bytes], where: str) -> Entry:
    texts = [field.decode("utf-8", "replace").strip() for field in fields[2:4]] + [_UNKNOWN, _UNKNOWN]
    when, etag = texts[0], texts[1]
    return Entry(
        fields[0],
        _size(fields[1].strip(), where),
        etag="" if etag == _UNKNOWN else _header_value(etag, where),
        modified=0 if when in ("", _UNKNOWN) else _seconds(when, where),
    )


def _size(digits: bytes, where: str) -> int:
    if not digits.isdigit() or len(digits) > _MOST_DIGITS:
        raise ListError(f"{where}: {shown(digits[:_MOST_DIGITS])} is no size in bytes")
    return int(digits)


@lru_cache(maxsize=4096)  # a data set is often uploaded within few seconds
def _seconds(text: str, where: str) -> int:
    try:
        moment = parsedate_to_datetime(text) if "," in text else datetime.fromisoformat(text)
    except ValueError as error:
        raise ListError(f"{where}: {text!r} is no date") from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _header_value(text: str, where: str) -> str:
    if not text.isascii() or not text.isprintable():
        raise ListError(f"{where}: {text!r} is no ETag")
    return text
