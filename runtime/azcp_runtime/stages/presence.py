"""The nodes tell each other what they hold, in numbers per file and per segment instead of a matrix."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

from azcp_runtime.contract.units import format_size
from azcp_runtime.disk.kept import Kept
from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.plan.presence import SKIP, Diff, classify, counted, rotated
from azcp_runtime.plan.segments import boundaries, decided, make_grid, origin_of_all, pieces_between
from azcp_runtime.source.listing import Listing

_PARTS: Final = 32
"""Where the number of nodes with a part of a file stands in the word that counts its holders."""


def exchange(ranks: Ranks, listing: Listing, held: Sequence[int], kept: Kept) -> Diff:
    """The diff, the same on every rank.

    A node that holds a file without a record of it needs no copy, but sends none either: only the
    record says that it is whole, and which version it is.

    Args:
        ranks: the world.
        listing: the data set.
        held: one byte per file, 1 where this node needs no copy.
        kept: what this node's journal vouches for.
    """
    seat = ranks.seat
    words = array("Q", (has if seat.rail == 0 else 0 for has in held))
    for file in kept.ranges if seat.rail == 0 else ():
        words[file] += 1 << _PARTS
    nearest = array(
        "Q",
        (
            rotated(seat.node, file, seat.nodes) if sends else seat.nodes
            for file, sends in enumerate(kept.whole)
        ),
    )
    words, nearest = ranks.reduce(words, "sum"), ranks.reduce(nearest, "min")
    holders = array("Q", (word & (1 << _PARTS) - 1 for word in words))
    diff = classify(nearest, holders, seat.nodes)
    unfinished = [file for file, word in enumerate(words) if word >> _PARTS and diff.origin[file] != SKIP]
    return _with_segments(ranks, listing, held, kept, diff, unfinished) if unfinished else diff


def _with_segments(
    ranks: Ranks, listing: Listing, held: Sequence[int], kept: Kept, diff: Diff, unfinished: Sequence[int]
) -> Diff:
    seat = ranks.seat
    grid = make_grid(unfinished, [listing.sizes[file] for file in unfinished])
    pieces = pieces_between(grid, ranks.reduce(boundaries(grid, kept.ranges), "or"))
    holders, nearest = array("Q"), array("Q")
    for place, (file, start, end) in enumerate(pieces):
        has = kept.has(file, start, end - start)
        holders.append(1 if seat.rail == 0 and (held[file] or has) else 0)
        sends = kept.whole[file] or has
        nearest.append(rotated(seat.node, place, seat.nodes) if sends else seat.nodes)
    segments = decided(pieces, ranks.reduce(nearest, "min"), ranks.reduce(holders, "sum"), seat.nodes)
    origin = array("l", diff.origin)
    for file, parts in segments.items():
        origin[file] = origin_of_all(parts)
    return counted(origin, segments)


def resumed_line(diff: Diff, nodes: int) -> str:
    """What earlier runs left inside unfinished files on so many nodes; empty where they left nothing."""
    everywhere = somewhere = size = 0
    for parts in diff.segments.values():
        for each in parts:
            length = each.end - each.start
            size += length
            everywhere += length if each.origin == SKIP else 0
            somewhere += length if each.origin >= 0 else 0
    if not everywhere + somewhere:
        return ""
    everywhere_is = "here" if nodes == 1 else "on every node"
    found = ((everywhere, everywhere_is), (somewhere, "on some nodes"))
    told = ", ".join(f"{format_size(length)} {where}" for length, where in found if length)
    files = len(diff.segments)
    return (
        f"resumed inside {files} unfinished {'file' if files == 1 else 'files'}: "
        f"of {format_size(size)} there are {told}"
    )
