"""--verify: each node digests its files from its disk; nodes are compared, and the stored Content-MD5."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import VerifyError
from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.source.listing import MD5_BYTES, Listing
from azcp_runtime.source.names import local_path, shown

_READ_BYTES: Final = 1 << 20
_SEGMENT_BYTES: Final = 256 << 20
"""A large file without a stored digest is hashed in parallel, segment by segment."""

_SHOWN: Final = 20
_NOT_MINE: Final = bytes(MD5_BYTES)


@dataclass(frozen=True, slots=True)
class Verified:
    """The outcome.

    Attributes:
        files: how many files were digested.
        match: files that equal their Content-MD5 on all nodes.
        mismatch: files that differ from it.
        absent: files without one; they were compared across nodes alone.
        wrong: one line for each file that differs, between nodes or from its Content-MD5.
    """

    files: int
    match: int
    mismatch: int
    absent: int
    wrong: tuple[str, ...]

    def check(self) -> None:
        """Raise VerifyError if any file is wrong; it names up to twenty."""
        if not self.wrong:
            return
        more = f" and {len(self.wrong) - _SHOWN} more" if len(self.wrong) > _SHOWN else ""
        raise VerifyError(
            f"{len(self.wrong)} of {self.files} files are wrong: " + "; ".join(self.wrong[:_SHOWN]) + more,
            remedy="delete them on the nodes named and run again",
        )


def verify(ranks: Ranks, dest: Path, listing: Listing) -> Verified:
    """Digest every file and compare; each rank digests its rail's share of its node's files.

    The outcome is the same on every rank, but only rank 0 can say which nodes differ.

    Raises:
        VerifyError: a file cannot be read.
    """
    seat = ranks.seat
    mine = range(seat.rail, len(listing), seat.rails)
    digests = _digests(os.fsencode(dest), listing, mine)
    # A bit that is set somewhere but not everywhere belongs to a file that differs.
    everywhere, somewhere = _combined(ranks, array("Q", digests), mine, len(listing))
    differ = [file for file in range(len(listing)) if _at(everywhere, file) != _at(somewhere, file)]
    stored = [file for file in range(len(listing)) if listing.content_md5(file) is not None]
    split = set(differ)
    mismatch = [f for f in stored if f not in split and listing.content_md5(f) != _at(everywhere, f)]
    wrong = [
        *_told_apart(ranks, listing, differ, {f: _at(digests, p) for p, f in enumerate(mine) if f in split}),
        *(f"{shown(listing.names[file])} differs from its Content-MD5" for file in mismatch),
    ]
    bad = len(mismatch) + sum(file in split for file in stored)
    return Verified(len(listing), len(stored) - bad, bad, len(listing) - len(stored), tuple(wrong))


def _told_apart(ranks: Ranks, listing: Listing, differ: Sequence[int], own: Mapping[int, bytes]) -> list[str]:
    """One line for each file that differs between nodes, with the nodes outside the majority."""
    if not differ:
        return []
    seat = ranks.seat
    row = b"".join(own.get(file, _NOT_MINE) for file in differ)
    rows = ranks.gather(seat.node.to_bytes(4, "little") + row)
    lines = []
    for place, file in enumerate(differ):
        by_node = {
            int.from_bytes(row[:4], "little"): _at(row[4:], place)
            for row in rows
            if _at(row[4:], place) != _NOT_MINE
        }
        usual = Counter(by_node.values()).most_common(1)[0][0] if by_node else b""
        odd = [seat.hosts[node] for node, digest in sorted(by_node.items()) if digest != usual]
        lines.append(f"{shown(listing.names[file])} differs between nodes ({', '.join(odd[:4])})")
    return lines


def _at(digests: bytes, place: int) -> bytes:
    return digests[place * MD5_BYTES : (place + 1) * MD5_BYTES]


def _combined(ranks: Ranks, words: array[int], mine: range, files: int) -> tuple[bytes, bytes]:
    """Bitwise AND and OR of the digests over the nodes; other rails' places are neutral."""
    low, high = array("Q", b"\xff" * MD5_BYTES * files), array("Q", bytes(MD5_BYTES * files))
    for place, file in enumerate(mine):
        low[2 * file : 2 * file + 2] = high[2 * file : 2 * file + 2] = words[2 * place : 2 * place + 2]
    return ranks.reduce(low, "and").tobytes(), ranks.reduce(high, "or").tobytes()


def _digests(root: bytes, listing: Listing, files: Sequence[int]) -> bytes:
    def digest(file: int) -> bytes:
        path = os.path.join(root, local_path(listing.names[file]))
        try:
            return _md5(path, listing.sizes[file], whole=listing.content_md5(file) is not None)
        except OSError as error:
            raise VerifyError(f"cannot read {shown(path)}: {error.strerror}") from error

    with ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)))) as threads:
        return b"".join(threads.map(digest, files))


def _md5(path: bytes, size: int, *, whole: bool) -> bytes:
    """MD5 of a file; of its segments' MD5 where it is large and nothing stored must be met."""
    if whole or size <= _SEGMENT_BYTES:
        return _range_md5(path, 0, size)
    starts = range(0, size, _SEGMENT_BYTES)
    with ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)))) as threads:
        parts = threads.map(lambda start: _range_md5(path, start, min(_SEGMENT_BYTES, size - start)), starts)
        return hashlib.md5(b"".join(parts), usedforsecurity=False).digest()


def _range_md5(path: bytes, start: int, length: int) -> bytes:
    state = hashlib.md5(usedforsecurity=False)
    buffer = bytearray(min(_READ_BYTES, max(1, length)))
    with open(path, "rb", buffering=0) as file:
        if start == 0 and os.fstat(file.fileno()).st_size < length:
            state.update(b"shorter than listed")
        file.seek(start)
        while length > 0 and (count := file.readinto(memoryview(buffer)[: min(len(buffer), length)])):
            state.update(memoryview(buffer)[:count])
            length -= count
    return state.digest()
