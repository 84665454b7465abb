"""What one rank has to write of the plan, and which files are whole only when several have done so."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from azcp_runtime.mpi.ranks import Seat
from azcp_runtime.plan.chunks import Lane, Plan
from azcp_runtime.source.listing import Listing
from azcp_runtime.stages.diff import Destination

_NOBODY: Final = -1


@dataclass(frozen=True, slots=True)
class Needs:
    """One rank's writing.

    Attributes:
        missing: per file the bytes that its rail brings to its node.
        shared: files of which several rails bring a part; the node's first rank publishes them.
        ready: files of which the node has every byte already, under no name or as a partial.
    """

    missing: array[int]
    shared: frozenset[int]
    ready: tuple[int, ...]


def needs_of(plan: Plan, destination: Destination, seat: Seat, listing: Listing) -> Needs:
    """What a rank has to write."""
    missing = array("Q", bytes(8 * len(listing)))
    bringer = array("l", [_NOBODY]) * len(listing)
    shared: set[int] = set()
    for lane in plan.lanes:
        rail = lane.owner % seat.rails
        for file, length in _needed(plan, lane, destination):
            if rail == seat.rail:
                missing[file] += length
            if bringer[file] == _NOBODY:
                bringer[file] = rail
            elif bringer[file] != rail:
                shared.add(file)
    ready = tuple(file for file, rail in enumerate(bringer) if rail == _NOBODY and not destination.held[file])
    return Needs(missing, frozenset(shared), ready)


def _needed(plan: Plan, lane: Lane, destination: Destination) -> Iterator[tuple[int, int]]:
    held, kept = destination.held, destination.kept
    first, after = plan.chunk_start[lane.first_chunk], plan.chunk_start[lane.first_chunk + lane.chunks]
    for extent in range(first, after):
        file, length = plan.file[extent], plan.length[extent]
        if not held[file] and not (kept.ranges and kept.has(file, plan.offset[extent], length)):
            yield file, length
