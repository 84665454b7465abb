"""--verify: each node digests its files from its disk; nodes are compared, and the stored Content-MD5."""

from __future__ import annotations

import hashlib
import os
import time
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import VerifyError
from azcp_runtime.machine import cpus
from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.source.listing import MD5_BYTES, Listing
from azcp_runtime.source.names import local_path, shown

_READ_BYTES: Final = 1 << 20
_SEGMENT_BYTES: Final = 256 << 20
"""A large file without a stored digest is hashed in parallel, segment by segment."""

_BATCH_SEGMENTS: Final = 4096
_BATCH_BYTES: Final = 16 << 30

_SHOWN: Final = 20
_PAUSE_S: Final = 3.0
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
        names: of these files, the same on every rank.
    """

    files: int
    match: int
    mismatch: int
    absent: int
    wrong: tuple[str, ...]
    names: tuple[bytes, ...]

    def check(self) -> None:
        """Raise VerifyError if any file is wrong; it names up to twenty."""
        if not self.wrong:
            return
        more = f" and {len(self.wrong) - _SHOWN} more" if len(self.wrong) > _SHOWN else ""
        raise VerifyError(
            f"{len(self.wrong)} of {self.files} files are wrong: " + "; ".join(self.wrong[:_SHOWN]) + more,
            remedy="run again without --compare, and they are fetched anew on all nodes",
        )


class _Stalled:
    """Finds out that the disk answers no read any more."""

    def __init__(self, stall_timeout_s: float) -> None:
        self._stall_timeout_s = stall_timeout_s
        self.read_bytes = 0
        self._seen = -1
        self._seen_at = self._looked_at = time.monotonic()

    def look(self, waiting_for: str) -> None:
        """Raise VerifyError where nothing has been read for too long; to be called every second or two."""
        now = time.monotonic()
        was_paused = now - self._looked_at > _PAUSE_S  # this process itself was stopped
        self._looked_at = now
        if was_paused or self.read_bytes != self._seen:
            self._seen, self._seen_at = self.read_bytes, now
        if now - self._seen_at > self._stall_timeout_s:
            raise VerifyError(
                f"nothing was read for {self._stall_timeout_s:.0f} s from {waiting_for}",
                cause="a disk that does not answer",
                remedy="look at that disk; --stall-timeout sets the limit",
            )


def verify(ranks: Ranks, dest: Path, listing: Listing, stall_timeout_s: float) -> Verified:
    """Digest every file and compare; each rank digests its rail's share of its node's files.

    The outcome is the same on every rank, but only rank 0 can say which nodes differ.

    Raises:
        VerifyError: a file cannot be read, or none for so many seconds.
    """
    seat = ranks.seat
    mine = range(seat.rail, len(listing), seat.rails)
    digests = _digests(ranks, os.fsencode(dest), listing, mine, _Stalled(stall_timeout_s))
    # A bit that is set somewhere but not everywhere belongs to a file that differs.
    everywhere, somewhere = _combined(ranks, array("Q", digests), mine, len(listing))
    differ = [file for file in range(len(listing)) if _at(everywhere, file) != _at(somewhere, file)]
    stored = [file for file in range(len(listing)) if listing.content_md5(file) is not None]
    split = set(differ)
    mismatch = [f for f in stored if f not in split and listing.content_md5(f) != _at(everywhere, f)]
    own = {f: _at(digests, p) for p, f in enumerate(mine) if f in split}
    wrong = [
        *_told_apart(ranks, listing, differ, own),
        *(f"{shown(listing.names[file])} differs from its Content-MD5" for file in mismatch),
    ]
    bad = len(mismatch) + sum(file in split for file in stored)
    names = tuple(listing.names[file] for file in (*differ, *mismatch))
    return Verified(len(listing), len(stored) - bad, bad, len(listing) - len(stored), tuple(wrong), names)


def _told_apart(ranks: Ranks, listing: Listing, differ: Sequence[int], own: Mapping[int, bytes]) -> list[str]:
    """One line for each file that differs between nodes; of the first, the nodes outside the majority."""
    if not differ:
        return []
    seat, named = ranks.seat, differ[:_SHOWN]
    row = b"".join(own.get(file, _NOT_MINE) for file in named)
    rows = ranks.gather(seat.node.to_bytes(4, "little") + row)
    lines = [f"{shown(listing.names[file])} differs between nodes" for file in differ]
    for place in range(len(named)) if rows else ():
        by_node = {
            int.from_bytes(row[:4], "little"): _at(row[4:], place)
            for row in rows
            if _at(row[4:], place) != _NOT_MINE
        }
        usual = Counter(by_node.values()).most_common(1)[0][0]
        odd = [seat.hosts[node] for node, digest in sorted(by_node.items()) if digest != usual]
        lines[place] += f" ({', '.join(odd[:4])})"
    return lines


def _at(digests: bytes, place: int) -> bytes:
    return digests[place * MD5_BYTES : (place + 1) * MD5_BYTES]


def _combined(ranks: Ranks, words: array[int], mine: range, files: int) -> tuple[bytes, bytes]:
    """Bitwise AND and OR of the digests over the nodes; other rails' places are neutral."""
    low, high = array("Q", b"\xff" * MD5_BYTES * files), array("Q", bytes(MD5_BYTES * files))
    for place, file in enumerate(mine):
        low[2 * file : 2 * file + 2] = high[2 * file : 2 * file + 2] = words[2 * place : 2 * place + 2]
    return ranks.reduce(low, "and").tobytes(), ranks.reduce(high, "or").tobytes()


def _digests(ranks: Ranks, root: bytes, listing: Listing, files: Sequence[int], stalled: _Stalled) -> bytes:
    """16 bytes per file. Batches keep a million files from becoming a million futures."""
    found = bytearray()
    threads = ThreadPoolExecutor(max(1, cpus() // ranks.seat.rails))
    try:
        for batch in _batches(listing, files):
            parts = [threads.submit(_range_md5, root, listing, *segment, stalled) for segment in batch]
            while waiting := wait(parts, timeout=1.0).not_done:
                ranks.hear()
                file = next(file for (file, _, _), part in zip(batch, parts, strict=True) if part in waiting)
                stalled.look(shown(listing.names[file]))
            by_file: dict[int, list[bytes]] = {}
            for (file, _, _), part in zip(batch, parts, strict=True):
                by_file.setdefault(file, []).append(part.result())
            for digests in by_file.values():
                joined = digests[0] if len(digests) == 1 else _md5(b"".join(digests))
                found += joined
    finally:
        # A read that never ends must not hold up the reason.
        threads.shutdown(wait=False, cancel_futures=True)
    return bytes(found)


def _batches(listing: Listing, files: Sequence[int]) -> Iterator[list[tuple[int, int, int]]]:
    """Segments (file, first byte, length) of whole files, a few thousand or a few GiB at a time.

    A file whose digest is stored is one segment; a large one without is hashed in parallel.
    """
    batch: list[tuple[int, int, int]] = []
    size = 0
    for file in files:
        length = listing.sizes[file]
        step = max(1, length if listing.content_md5(file) is not None else _SEGMENT_BYTES)
        batch += [(file, at, min(step, length - at)) for at in range(0, max(1, length), step)]
        size += length
        if len(batch) >= _BATCH_SEGMENTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _range_md5(root: bytes, listing: Listing, file: int, start: int, length: int, stalled: _Stalled) -> bytes:
    path = os.path.join(root, local_path(listing.names[file]))
    state = hashlib.md5(usedforsecurity=False)
    buffer = memoryview(bytearray(min(_READ_BYTES, max(1, length))))
    try:
        with open(path, "rb", buffering=0) as opened:
            if os.fstat(opened.fileno()).st_size != listing.sizes[file]:
                state.update(b"another size than listed")
            opened.seek(start)
            while length > 0 and (count := opened.readinto(buffer[: min(len(buffer), length)])):
                state.update(buffer[:count])
                length -= count
                stalled.read_bytes += count  # an update that is lost to another thread's is no harm
    except OSError as error:
        raise VerifyError(f"cannot read {shown(path)}: {error.strerror}") from error
    return state.digest()
