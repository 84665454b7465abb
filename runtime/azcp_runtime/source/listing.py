"""The listing: what the source holds, made once by rank 0 and sent to every rank."""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import ListError
from azcp_runtime.source.names import shown

MD5_BYTES: Final = 16
LARGEST_FILE_BYTES: Final = 1 << 48
"""Above the largest blob there can be, 190.7 TiB (Azure Storage's scale targets)."""

_NO_MD5: Final = bytes(MD5_BYTES)
_HEAD: Final = struct.Struct("<Q")
ARCHIVE: Final = "Archive"
"""The tier whose blobs cannot be read before they are rehydrated."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One blob or file as the source lists it.

    Attributes:
        name: UTF-8 bytes below the prefix.
        size: bytes.
        etag: what a range request pins, quotes included; empty where unknown.
        modified: Last-Modified in seconds since the epoch; 0 where unknown.
        md5: the stored Content-MD5, 16 bytes; empty where absent.
        tier: the access tier as listed; empty where unknown.
        is_folder: a marker that stands for a folder (metadata ``hdi_isfolder``).
    """

    name: bytes
    size: int
    etag: str = ""
    modified: int = 0
    md5: bytes = b""
    tier: str = ""
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """All files of a data set, in the order of their names' bytes; one column per property.

    A column of n entries instead of n objects keeps a million blobs near 200 MB.
    ``md5`` holds 16 bytes per file, zeros where the blob stores none.
    """

    names: Sequence[bytes]
    sizes: array[int]
    etags: Sequence[bytes]
    modified: array[int]
    md5: bytes
    archived: Sequence[int]

    def __len__(self) -> int:
        """The number of files."""
        return len(self.names)

    @property
    def total_bytes(self) -> int:
        """The size of the data set."""
        return sum(self.sizes)

    def content_md5(self, index: int) -> bytes | None:
        """The stored digest of one file, or None where the blob has none."""
        digest = self.md5[index * MD5_BYTES : (index + 1) * MD5_BYTES]
        return None if digest == _NO_MD5 else digest

    def encoded(self) -> bytes:
        """The listing as bytes, for a broadcast."""
        # No name holds a NUL and no header a newline: both were checked where they came in.
        columns = (
            b"\0".join(self.names),
            self.sizes.tobytes(),
            b"\n".join(self.etags),
            self.modified.tobytes(),
            self.md5,
            json.dumps(list(self.archived)).encode(),
        )
        head = (_HEAD.pack(value) for value in (len(self), *map(len, columns)))
        return b"".join((*head, *columns))


def decode_listing(data: bytes) -> Listing:
    """The listing that ``Listing.encoded`` wrote."""
    count, *lengths = (value for (value,) in _HEAD.iter_unpack(data[: _HEAD.size * 7]))
    columns, at = [], _HEAD.size * 7
    for length in lengths:
        columns.append(data[at : at + length])
        at += length
    names, sizes, etags, modified, md5, archived = columns
    return Listing(
        names.split(b"\0") if count else [],
        array("Q", sizes),
        etags.split(b"\n") if count else [],
        array("q", modified),
        md5,
        json.loads(archived),
    )


def make_listing(entries: Iterable[Entry]) -> Listing:
    """The files among entries, sorted by name; folders and their markers are left out.

    A folder marker is an entry without bytes that says so, whose name is empty or ends in a slash,
    or below whose name another entry lies. One with bytes stays, to be refused by its name.

    Raises:
        ListError: an entry has a size that no file has.
    """
    found = _columns(entries)
    names = found.names
    order = range(len(names)) if _is_sorted(names) else sorted(range(len(names)), key=names.__getitem__)
    parents = _empty_parents(found)
    if parents or not isinstance(order, range):
        return select(found, [index for index in order if names[index] not in parents])
    return found


def _columns(entries: Iterable[Entry]) -> Listing:
    """The entries that are no markers, as they come: no object of one outlives its turn."""
    names: list[bytes] = []
    etags: list[bytes] = []
    sizes, modified, md5, archived = array("Q"), array("q"), bytearray(), []
    for entry in entries:
        if not 0 <= entry.size <= LARGEST_FILE_BYTES:
            raise ListError(f"{shown(entry.name)} has an impossible size: {entry.size}")
        if _is_marker(entry):
            continue
        if entry.tier == ARCHIVE:
            archived.append(len(names))
        names.append(entry.name)
        sizes.append(entry.size)
        etags.append(entry.etag.encode())
        modified.append(entry.modified)
        md5 += entry.md5 or _NO_MD5
    return Listing(names, sizes, etags, modified, bytes(md5), archived)


def _is_sorted(names: Sequence[bytes]) -> bool:
    return all(names[index] <= names[index + 1] for index in range(len(names) - 1))


def select(listing: Listing, keep: Sequence[int]) -> Listing:
    """The listing of some of its files, by index, in the same order."""
    archived = set(listing.archived)
    md5 = bytearray()
    for i in keep:
        md5 += listing.md5[i * MD5_BYTES : (i + 1) * MD5_BYTES]
    return Listing(
        [listing.names[i] for i in keep],
        array("Q", (listing.sizes[i] for i in keep)),
        [listing.etags[i] for i in keep],
        array("q", (listing.modified[i] for i in keep)),
        bytes(md5),
        [new for new, old in enumerate(keep) if old in archived],
    )


def _is_marker(entry: Entry) -> bool:
    return not entry.size and (entry.is_folder or not entry.name or entry.name.endswith(b"/"))


def _empty_parents(listing: Listing) -> set[bytes]:
    """Names without bytes below which other names lie."""
    empty = {name for name, size in zip(listing.names, listing.sizes, strict=True) if not size}
    parents: set[bytes] = set()
    if not empty:
        return parents
    for name in listing.names:
        cut = name.find(b"/")
        while cut > 0:
            if name[:cut] in empty:
                parents.add(name[:cut])
            cut = name.find(b"/", cut + 1)
    return parents
