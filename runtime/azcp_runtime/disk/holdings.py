"""Which files a node already holds, by the policy of --compare."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from azcp_runtime.contract import UsageError
from azcp_runtime.source.listing import Listing
from azcp_runtime.source.names import local_path
from azcp_runtime.source.shardlist import read_below


def held_files(
    dest: Path, listing: Listing, compare: str, filelist: Path | None, prefix: str, recorded: bytearray
) -> bytearray:
    """One byte per file of the listing, 1 where this node need not get it.

    Args:
        dest: this node's destination.
        listing: the data set.
        compare: etag (what the journal vouches for), none (nothing is held), size (a regular file of
            the same size), or filelist (that, and the list of an earlier run has the same size and
            Last-Modified).
        filelist: that list.
        prefix: the source's, which names in a list may begin with.
        recorded: one byte per file, 1 where the journal vouches for it.
    """
    if compare == "etag":
        return recorded
    held = bytearray(len(listing))
    if compare == "none":
        return held
    is_candidate = _candidates(listing, filelist, prefix) if compare == "filelist" else _every_file
    root = os.fsencode(dest)
    for file, name in enumerate(listing.names):
        if is_candidate(file):
            held[file] = _has_size(os.path.join(root, local_path(name)), listing.sizes[file])
    return held


def _every_file(_file: int) -> bool:
    return True


def _candidates(listing: Listing, filelist: Path | None, prefix: str) -> Callable[[int], bool]:
    if filelist is None:
        raise UsageError("--compare filelist needs --filelist FILE")
    earlier = {entry.name: (entry.size, entry.modified) for entry in read_below(filelist, prefix)}

    def same(file: int) -> bool:
        return earlier.get(listing.names[file]) == (listing.sizes[file], listing.modified[file])

    return same


def _has_size(path: bytes, size: int) -> bool:
    try:
        status = os.lstat(path)
    except OSError:  # not there: it is not held
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == size
