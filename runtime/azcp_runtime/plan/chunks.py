"""What one broadcast carries: chunks laid out in slots, uniform in size on each lane.

All messages of a lane have one size, so that receives can be posted before anyone knows which chunk
comes next; a trailer inside the message says which one it is.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from azcp_runtime.plan.shards import SMALL_FILE_BYTES, Pieces

ALIGN: Final = 4096
"""Extents of large files start at multiples of this in the slot and in the file, for O_DIRECT."""

TRAILER_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Lane:
    """One owner's stream.

    Attributes:
        owner: the root's rank.
        payload_bytes: room for extents in each of its messages.
        first_chunk: index of its first chunk among all.
        chunks: how many it sends.
        total_bytes: bytes of files in them.
    """

    owner: int
    payload_bytes: int
    first_chunk: int
    chunks: int
    total_bytes: int

    @property
    def message_bytes(self) -> int:
        """Bytes of one broadcast."""
        return self.payload_bytes + TRAILER_BYTES


@dataclass(frozen=True, slots=True)
class Plan:
    """Every chunk of a run, as columns.

    Attributes:
        lanes: the owners that have something to send, by rank.
        chunk_start: per chunk the index of its first extent, and one more at the end.
        file: per extent its file's index.
        offset: per extent the first byte in the file.
        length: per extent bytes.
        slot: per extent the first byte in the slot.
        shards: how many ranges and whole files the lanes carry.
    """

    lanes: tuple[Lane, ...]
    chunk_start: array[int]
    file: array[int]
    offset: array[int]
    length: array[int]
    slot: array[int]
    shards: int

    def extents(self, chunk: int) -> range:
        """Indices of one chunk's extents."""
        return range(self.chunk_start[chunk], self.chunk_start[chunk + 1])

    def digest(self) -> bytes:
        """16 bytes that differ where two ranks' plans do."""
        state = hashlib.blake2b(repr(self.lanes).encode(), digest_size=16)
        for column in (self.chunk_start, self.file, self.offset, self.length, self.slot):
            state.update(column)
        return state.digest()


def slot_bytes(payload: int) -> int:
    """Memory of one slot: whole pages, the last of them for the trailer."""
    return aligned(payload) + ALIGN


def aligned(size: int) -> int:
    """The next multiple of ALIGN."""
    return -(-size // ALIGN) * ALIGN


def lay_out(pieces: Pieces, owner: Sequence[int], sizes: Sequence[int], chunk_bytes: int) -> Plan:
    """Lay every owner's pieces into chunks of at most chunk_bytes (rounded up to ALIGN)."""
    plan = Plan((), array("Q", [0]), array("Q"), array("Q"), array("Q"), array("Q"), 0)
    lanes = []
    for seat, given in sorted(_by_owner(pieces, owner).items()):
        # Ranges first, packs last: what is in flight at the end is small.
        mine = [p for p in given if not _is_pack(pieces, p)] + [p for p in given if _is_pack(pieces, p)]
        total = sum(pieces.length[piece] for piece in mine)
        payload = _payload(pieces, mine, chunk_bytes)
        first = len(plan.chunk_start) - 1
        _Layer(plan, payload).add_all(pieces, mine, sizes)
        lanes.append(Lane(seat, payload, first, len(plan.chunk_start) - 1 - first, total))
    shards = sum(pieces.count)
    return Plan(tuple(lanes), plan.chunk_start, plan.file, plan.offset, plan.length, plan.slot, shards)


def _is_pack(pieces: Pieces, piece: int) -> bool:
    return pieces.count[piece] > 1 or pieces.length[piece] <= SMALL_FILE_BYTES


def _by_owner(pieces: Pieces, owner: Sequence[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for piece in range(len(pieces)):
        found.setdefault(owner[piece], []).append(piece)
    return found


def _payload(pieces: Pieces, mine: Sequence[int], chunk_bytes: int) -> int:
    """The size that cuts this owner's stream into equal chunks, so that the last is as full as the rest."""
    stream = sum(aligned(pieces.length[piece]) for piece in mine)
    count = max(1, -(-stream // aligned(chunk_bytes)))
    return aligned(-(-stream // count))


class _Layer:
    """Appends extents to a plan's columns, closing a chunk when it is full."""

    def __init__(self, plan: Plan, payload: int) -> None:
        self._plan = plan
        self._payload = payload
        self._at = 0

    def add_all(self, pieces: Pieces, mine: Sequence[int], sizes: Sequence[int]) -> None:
        for piece in mine:
            first, count = pieces.first[piece], pieces.count[piece]
            if count > 1 or pieces.length[piece] == sizes[first] <= SMALL_FILE_BYTES:
                for file in range(first, first + count):
                    self._small(file, sizes[file])
            else:
                self._range(first, pieces.offset[piece], pieces.length[piece])
        if self._at:
            self._close()

    def _small(self, file: int, size: int) -> None:
        if size > self._payload - self._at:
            if size > self._payload:
                self._range(file, 0, size)
                return
            self._close()
        self._extent(file, size)

    def _range(self, file: int, offset: int, length: int) -> None:
        # Millions of turns in a large plan: the columns' methods are looked up once.
        plan, payload, end = self._plan, self._payload, offset + length
        add_file, add_offset, add_length = plan.file.append, plan.offset.append, plan.length.append
        add_slot, close = plan.slot.append, self._close
        at = aligned(self._at)
        while offset < end:
            if at >= payload:
                close()
                at = 0
            part = min(end - offset, payload - at)
            add_file(file)
            add_offset(offset)
            add_length(part)
            add_slot(at)
            offset += part
            at += part if offset == end else aligned(part)
        self._at = at

    def _extent(self, file: int, length: int) -> None:
        plan = self._plan
        plan.file.append(file)
        plan.offset.append(0)
        plan.length.append(length)
        plan.slot.append(self._at)
        self._at += length

    def _close(self) -> None:
        self._plan.chunk_start.append(len(self._plan.file))
        self._at = 0
