"""Reads for the fetchers: from the account, from the source directory, or from this node's own copy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from azcp_runtime.engine.gate import Gate
from azcp_runtime.plan.presence import AZURE
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
        origin: per file, as in Diff.
        source: the account or the source directory.
        dest: this node's destination, from which it sends what others lack.
    """

    def __init__(self, listing: Listing, origin: Sequence[int], source: BlobReader, dest: Path) -> None:
        self._listing = listing
        self._origin = origin
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
        if self._origin[file] != AZURE:
            read_file(os.path.join(self._dest, local_path(name)), name, "", offset, into)
            return
        blob = Entry(name, listing.sizes[file], listing.etags[file].decode(), listing.modified[file])
        self._source.read(blob, offset, into)
