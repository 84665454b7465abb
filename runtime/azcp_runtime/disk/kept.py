"""What earlier runs left on this node: whole files and parts of files, by the journal and only by it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from azcp_runtime.contract import STATE_DIR, PreflightError
from azcp_runtime.disk.records import Record, name_digest, read_records, remove, version_digest, write_records
from azcp_runtime.disk.tree import partial_path
from azcp_runtime.plan.chunks import ALIGN
from azcp_runtime.plan.ranges import Range, covers, merged, total
from azcp_runtime.plan.shards import SMALL_FILE_BYTES
from azcp_runtime.source.listing import Listing
from azcp_runtime.source.names import local_path

_JOURNAL: Final = b"journal"
_NAMES: Final = re.compile(rb"journal(-\d+)?")


@dataclass(frozen=True, slots=True)
class Kept:
    """What the journal vouches for, in the version that the listing has.

    Attributes:
        whole: one byte per file, 1 where the whole file is here.
        ranges: by file the bytes of its partial that are here, merged.
    """

    whole: bytearray
    ranges: dict[int, list[Range]] = field(default_factory=dict)

    def has(self, file: int, offset: int, length: int) -> bool:
        """Whether these bytes of a file need not be written again."""
        return file in self.ranges and covers(self.ranges[file], offset, offset + length)

    def kept_bytes(self, file: int) -> int:
        """Bytes of a file's partial."""
        return total(self.ranges.get(file, ()))


def journal_path(dest: Path, rail: int) -> bytes:
    """The journal that one rank of a node writes."""
    return os.path.join(_folder(dest), b"%b-%d" % (_JOURNAL, rail))


def journals(dest: Path) -> list[bytes]:
    """All journals of a node, that of earlier runs first; raises OSError."""
    folder = _folder(dest)
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if _NAMES.fullmatch(name)]


def take_stock(dest: Path, listing: Listing, source: bytes, *, forget: bool) -> Kept:
    """Join the journals of all earlier ranks into one that holds what is true now, and tell it.

    Until it is on the disk nothing may be written: a partial whose version has changed is written
    over, and a record of the older one must never be found beside it.

    Args:
        dest: this node's destination, locked.
        listing: the data set.
        source: what identifies the source, for ``version_digest``.
        forget: drop what is recorded of the listing's files.

    Raises:
        PreflightError: the journal cannot be written.
    """
    try:
        paths = journals(dest)
        if not paths:
            return Kept(bytearray(len(listing)))
        stock = _Stock(os.fsencode(dest), listing, source, forget=forget)
        for path in paths:
            for record in read_records(path):
                stock.add(record)
        stock.look_into_partials()
        joined = os.path.join(_folder(dest), _JOURNAL)
        write_records(joined, stock.encoded)
        for path in paths:
            if path != joined:
                remove(path)
    except OSError as error:
        raise PreflightError(
            f"cannot keep the journal in {dest / STATE_DIR}: {error.strerror}",
            remedy=f"check the disk, or remove {dest / STATE_DIR}, which forgets what is there",
        ) from error
    return stock.kept


def kept_by_journal(dest: Path, listing: Listing, source: bytes) -> Kept:
    """What ``take_stock`` has found true, for the other ranks of the node."""
    kept, matches = Kept(bytearray(len(listing))), _Matches(listing, source)
    for record in read_records(os.path.join(_folder(dest), _JOURNAL)):
        file = matches.file_of(record)
        if file is None or not matches.is_current(file, record):
            continue
        if record.length:
            kept.ranges.setdefault(file, []).append((record.first, record.first + record.length))
        else:
            kept.whole[file] = 1
    return kept


def _folder(dest: Path) -> bytes:
    return os.fsencode(dest / STATE_DIR)


class _Matches:
    """Finds the file of a listing that a record speaks of."""

    def __init__(self, listing: Listing, source: bytes) -> None:
        self._listing = listing
        self._source = source
        self._files: dict[bytes, int] = {}

    def file_of(self, record: Record) -> int | None:
        """Its index; None where it is not listed."""
        if not self._files:  # not before there is a record: it takes a second for a million names
            self._files = {name_digest(name): file for file, name in enumerate(self._listing.names)}
        return self._files.get(record.name)

    def is_current(self, file: int, record: Record) -> bool:
        """Whether it speaks of the version that is listed."""
        size, etag = self._listing.sizes[file], self._listing.etags[file]
        return record.version == version_digest(self._source, size, etag)


class _Stock:
    """What is true of the listing's files, and what is said of others, whose partials stay as they are.

    Attributes:
        kept: what is true.
        encoded: the records of all that.
    """

    def __init__(self, root: bytes, listing: Listing, source: bytes, *, forget: bool) -> None:
        self._root = root
        self._listing = listing
        self._matches = _Matches(listing, source)
        self._forget = forget
        self._doubtful: dict[int, list[Record]] = {}
        self.kept = Kept(bytearray(len(listing)))
        self.encoded = bytearray()

    def add(self, record: Record) -> None:
        """One record of an earlier run."""
        file = self._matches.file_of(record)
        if file is None:
            self.encoded += record.encoded()
        elif not self._forget and not self.kept.whole[file] and self._matches.is_current(file, record):
            state = None if record.length else _regular(self._target(file))
            if state and _is_whole(state, self._listing.sizes[file], record):
                self.kept.whole[file] = 1
                self.encoded += record.encoded()
            else:
                self._doubtful.setdefault(file, []).append(record)

    def look_into_partials(self) -> None:
        """All records were added: what is left of unfinished files."""
        for file, records in self._doubtful.items():
            size = self._listing.sizes[file]
            # A small file is written anew in one go.
            if self.kept.whole[file] or size <= SMALL_FILE_BYTES:
                continue
            found = _true_parts(partial_path(self._target(file)), size, records)
            for record in found:
                self.encoded += record.encoded()
            if found:
                self.kept.ranges[file] = [(each.first, each.first + each.length) for each in found]

    def _target(self, file: int) -> bytes:
        return os.path.join(self._root, local_path(self._listing.names[file]))


def _true_parts(partial: bytes, size: int, records: Sequence[Record]) -> list[Record]:
    try:
        descriptor = os.open(partial, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # not there: the file is whole in another version, or somebody has removed it
        return []
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
            return []
        spans = [_span(state, size, record) for record in records if record.inode == state.st_ino]
        written = [span for span in spans if span[1] and _is_written(descriptor, *span)]
        some = records[0]
        return [
            Record(some.name, some.version, state.st_ino, start, end - start)
            for start, end in merged(written)
        ]
    finally:
        os.close(descriptor)


def _span(state: os.stat_result, size: int, record: Record) -> Range:
    """The bytes of a partial that a record vouches for; (0, 0) where it can be none of ours."""
    if not record.length:  # killed between this record and the rename that follows it
        return (0, size) if _is_whole(state, size, record) else (0, 0)
    end = record.first + record.length
    ends_well = end == size or (end < size and end % ALIGN == 0)
    if record.first % ALIGN or not ends_well or end > state.st_size:
        return (0, 0)
    return record.first, end


def _is_whole(state: os.stat_result, size: int, record: Record) -> bool:
    return (state.st_ino, state.st_mtime_ns, state.st_size) == (record.inode, record.first, size)


def _is_written(descriptor: int, start: int, end: int) -> bool:
    """Whether data lies there: blocks that were only reserved are a hole to the file system."""
    try:
        return os.lseek(descriptor, start, os.SEEK_HOLE) >= end
    except OSError:  # a file system that cannot tell
        return False


def _regular(path: bytes) -> os.stat_result | None:
    try:
        state = os.lstat(path)
    except OSError:  # not there
        return None
    return state if stat.S_ISREG(state.st_mode) else None
