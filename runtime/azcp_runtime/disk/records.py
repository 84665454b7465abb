"""The journal's format: what one record says, and what can be read back of a file that was cut off anywhere.

A record names no path. It holds digests of a file's name and version, which only a listing can match,
and the inode it speaks of: whatever somebody writes into a journal, or copies from another disk, it
can neither lead out of the destination nor vouch for another file.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from azcp_runtime.source.names import local_path

_HEADER: Final = struct.Struct("<16sQI")
_RECORD: Final = struct.Struct("<16s16sQQQ")
_CHECKED: Final = struct.Struct("<16s16sQQQI")
_CHECK: Final = struct.Struct("<I")
_MAGIC: Final = b"azcp journal 1\n\0"
RECORD_BYTES: Final = _CHECKED.size

MOST_BYTES: Final = 256 << 20
"""A million files are 60 MB; what is larger is none of ours, and would only take memory."""

_READ_RECORDS: Final = 1 << 16


class Record(NamedTuple):
    """A range of a partial that is on the disk, or a whole file; a tuple, for there may be a million.

    Attributes:
        name: digest of the file's name.
        version: digest of its source, size and ETag.
        inode: of the partial, which is the file's own once it is renamed.
        first: the first byte of a range; of a whole file its modification time in nanoseconds.
        length: bytes of a range; 0 for a whole file.
    """

    name: bytes
    version: bytes
    inode: int
    first: int
    length: int

    def encoded(self) -> bytes:
        """60 bytes."""
        body = _RECORD.pack(self.name, self.version, self.inode, self.first, self.length)
        return body + _CHECK.pack(zlib.crc32(body))


def name_digest(name: bytes) -> bytes:
    """What a record says of a name: names that become one file are one."""
    return hashlib.blake2b(local_path(name), digest_size=16).digest()


def version_digest(source: bytes, size: int, etag: bytes) -> bytes:
    """What a record says of one version of a file; empty, which no record is, where there is no ETag."""
    if not etag:
        return b""
    return hashlib.blake2b(source + size.to_bytes(8, "little") + etag, digest_size=16).digest()


def header(inode: int) -> bytes:
    """The first bytes of a journal. A copy of it has another inode, and speaks of other files."""
    body = _MAGIC + inode.to_bytes(8, "little")
    return body + _CHECK.pack(zlib.crc32(body))


def read_records(path: bytes) -> Iterator[Record]:
    """The whole records of a journal, in order; nothing of what is not one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # not there, or a link: there are no records
        return
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            return
        if file.read(_HEADER.size) != header(status.st_ino):
            return
        while data := file.read(_READ_RECORDS * RECORD_BYTES):
            yield from _decoded(data)


def _decoded(data: bytes) -> Iterator[Record]:
    view = memoryview(data)[: len(data) - len(data) % RECORD_BYTES]
    at = 0
    for name, version, inode, first, length, check in _CHECKED.iter_unpack(view):
        if zlib.crc32(view[at : at + _RECORD.size]) == check:
            yield Record(name, version, inode, first, length)
        at += RECORD_BYTES


def write_records(path: bytes, encoded: bytes | bytearray) -> None:
    """A journal in place of the one that is there, on the disk when this returns; raises OSError."""
    folder, _, name = path.rpartition(b"/")
    beside = folder + b"/new-" + name
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    remove(beside)
    with open(os.open(beside, flags, 0o600), "wb") as file:
        file.write(header(os.fstat(file.fileno()).st_ino))
        file.write(encoded)
        file.flush()
        os.fsync(file.fileno())
    os.rename(beside, path)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: bytes) -> None:
    """Remove a file or a link, if there is one."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
