"""Which rank fetches which bytes: longest processing time first, over range shards and packs."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from azcp_runtime.plan.presence import AZURE, SKIP, Segment

NO_SEGMENTS: Final[Mapping[int, Sequence[Segment]]] = MappingProxyType({})

SMALL_FILE_BYTES: Final = 256 << 10
"""Files up to this size travel many to a chunk, whole where the chunk has room for one."""

_SHARDS_PER_OWNER: Final = 64
_PACK_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """The seats that work can be given to: rank = node x rails + rail.

    Attributes:
        nodes: nodes.
        rails: ranks per node, each with a communicator across the nodes.
        download_ranks: how many seats read from the source; one per node before a second on any.
    """

    nodes: int
    rails: int
    download_ranks: int

    def downloaders(self) -> list[int]:
        """The seats that read from the source: on as many nodes and rails as there can be."""
        rails = self.rails
        in_turn = [
            node * rails + (turn + node) % rails for turn in range(rails) for node in range(self.nodes)
        ]
        return in_turn[: self.download_ranks]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Units of work, one row each: a range of one file, or a run of whole small files.

    Attributes:
        first: index of the (first) file.
        count: files in the piece; more than 1 only where they are small and neighbours.
        offset: first byte of a range; 0 for a pack.
        length: bytes.
        origin: AZURE, or the node that sends the piece.
    """

    first: array[int]
    count: array[int]
    offset: array[int]
    length: array[int]
    origin: array[int]

    def __len__(self) -> int:
        """The number of pieces."""
        return len(self.first)


def auto_shard_bytes(total: int, owners: int, chunk: int) -> int:
    """A range so short that no owner gets 2 % more than another, in whole chunks."""
    share = total // max(1, owners * _SHARDS_PER_OWNER)
    return max(1, -(-share // chunk)) * chunk


def cut(
    sizes: Sequence[int],
    origin: Sequence[int],
    shard_bytes: int,
    pack_bytes: int,
    segments: Mapping[int, Sequence[Segment]] = NO_SEGMENTS,
) -> Pieces:
    """Cut the files that move into pieces, in listing order; empty files make none.

    Args:
        sizes: bytes per file.
        origin: per file, as in Diff.
        shard_bytes: no range is longer.
        pack_bytes: no pack is larger.
        segments: as in Diff.
    """
    pieces = Pieces(array("Q"), array("Q"), array("Q"), array("Q"), array("l"))
    for file, count, length in _packs(sizes, origin, min(shard_bytes, pack_bytes)):
        if file in segments:
            for each in segments[file]:
                if each.origin != SKIP:
                    _add_ranges(pieces, file, each.start, each.end, each.origin, shard_bytes)
        elif count == 1:
            _add_ranges(pieces, file, 0, length, origin[file], shard_bytes)
        else:
            _add(pieces, file, count, 0, length, origin[file])
    return pieces


def _add_ranges(pieces: Pieces, file: int, start: int, end: int, origin: int, shard_bytes: int) -> None:
    for offset in range(start, end, shard_bytes):
        _add(pieces, file, 1, offset, min(shard_bytes, end - offset), origin)


def _add(pieces: Pieces, file: int, count: int, offset: int, length: int, origin: int) -> None:
    pieces.first.append(file)
    pieces.count.append(count)
    pieces.offset.append(offset)
    pieces.length.append(length)
    pieces.origin.append(origin)


def _packs(sizes: Sequence[int], origin: Sequence[int], pack_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Runs of neighbouring small files of one origin, and single large ones: (first, count, bytes)."""
    first = count = total = 0
    for file, size in enumerate(sizes):
        moves = size and origin[file] != SKIP
        small = moves and size <= SMALL_FILE_BYTES
        goes_on = small and count and origin[file] == origin[first] and total + size <= pack_bytes
        if count and not goes_on:
            yield first, count, total
            count = total = 0
        if small:
            first, count, total = (first, count + 1, total + size) if count else (file, 1, size)
        elif moves:
            yield file, 1, size
    if count:
        yield first, count, total


def assign(pieces: Pieces, cluster: Cluster) -> array[int]:
    """The owner's rank of each piece: the largest piece first, each to whoever has least so far."""
    owner = array("l", bytes(len(pieces) * array("l").itemsize))
    load = [0] * (cluster.nodes * cluster.rails)
    # The sort is stable, so pieces of one size stay in listing order.
    by_size = sorted(range(len(pieces)), key=pieces.length.__getitem__, reverse=True)
    for piece in by_size:
        node = pieces.origin[piece]
        if node != AZURE:  # its holder sends it; the lighter of that node's rails
            seats = range(node * cluster.rails, (node + 1) * cluster.rails)
            owner[piece] = min(seats, key=lambda seat: (load[seat], seat))
            load[owner[piece]] += pieces.length[piece]
    heap = [(load[seat], turn, seat) for turn, seat in enumerate(cluster.downloaders())]
    heapq.heapify(heap)
    for piece in by_size:
        if pieces.origin[piece] == AZURE:
            held, turn, seat = heap[0]
            owner[piece] = seat
            heapq.heapreplace(heap, (held + pieces.length[piece], turn, seat))
    return owner


def default_pack_bytes(total: int, owners: int, chunk: int) -> int:
    """A pack small enough to balance, large enough that a million files are few pieces."""
    return max(SMALL_FILE_BYTES, min(_PACK_BYTES, chunk, total // max(1, owners * _SHARDS_PER_OWNER)))
