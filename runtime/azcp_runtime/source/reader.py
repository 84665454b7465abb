"""Reads for the fetchers: from the account, from the source directory, or from this node's own copy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from azcp_runtime.disk.tree import partial_path
from azcp_runtime.engine.gate import Gate
from azcp_runtime.plan.presence import AZURE, Diff
from azcp_runtime.source.directory import read_file
from azcp_runtime.source.listing import Entry, Listing
from azcp_runtime.source.names import local_path, shown


class BlobReader(Protocol):
    """Reads ranges of blobs.

    Attributes:
        arrived_bytes: bytes so far, of unfinished ranges too.
    """

    arrived_bytes: int

    def read(self, blob: Entry, offset: int, into: memoryview) -> None:
        """Fill ``into``; raises DownloadError."""


class DirectoryReader:
    """Reads files of the source directory, as long as they are what was listed.

    Args:
        root: the source directory.
        gate: what each read passes; None where nothing holds reads back.
    """

    def __init__(self, root: Path, gate: Gate | None = None) -> None:
        self._root = os.fsencode(root)
        self._gate = gate
        self.arrived_bytes = 0

    def read(self, blob: Entry, offset: int, into: memoryview) -> None:
        """Fill ``into`` from a file; raises DownloadError."""
        if self._gate:
            self._gate.enter(len(into))
        read_file(os.path.join(self._root, blob.name), blob.name, blob.etag, offset, into)
        self.arrived_bytes += len(into)
        if self._gate:
            self._gate.leave(accepted=True)


class OriginReader:
    """Sends each read to where the plan says the file's bytes are.

    Args:
        listing: the data set.
        diff: where each byte is.
        source: the account or the source directory.
        dest: this node's destination, from which it sends what others lack.
        whole: one byte per file, 1 where it is there as a whole; else its partial has what is sent.
    """

    def __init__(
        self, listing: Listing, diff: Diff, source: BlobReader, dest: Path, whole: Sequence[int]
    ) -> None:
        self._listing = listing
        self._diff = diff
        self._whole = whole
        self._source = source
        self._dest = os.fsencode(dest)

    @property
    def arrived_bytes(self) -> int:
        """Bytes that have come from the source so far, of unfinished reads too."""
        return self._source.arrived_bytes

    def shown(self, file: int) -> str:
        """A file's name for messages."""
        return shown(self._listing.names[file])

    def read(self, file: int, offset: int, into: memoryview) -> None:
        """Fill ``into`` from a file of the listing; raises DownloadError."""
        listing = self._listing
        name = listing.names[file]
        if self._diff.origin_of(file, offset) != AZURE:
            path = os.path.join(self._dest, local_path(name))
            read_file(path if self._whole[file] else partial_path(path), name, "", offset, into)
            return
        blob = Entry(name, listing.sizes[file], listing.etags[file].decode(), listing.modified[file])
        self._source.read(blob, offset, into)
