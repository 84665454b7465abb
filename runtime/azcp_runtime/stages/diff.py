"""[diff]: the destination is checked, and the nodes tell each other what they already hold."""

from __future__ import annotations

import os
import secrets
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from azcp_runtime.contract import STATE_DIR, PreflightError
from azcp_runtime.disk.holdings import held_files
from azcp_runtime.disk.probe import (
    allocated_bytes,
    check_obstacles,
    check_space,
    direct_works,
    free_bytes,
    lock,
    prepare,
)
from azcp_runtime.disk.tree import partial_path
from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.options import Options
from azcp_runtime.plan.presence import Diff, classify, rotated
from azcp_runtime.source.listing import Listing
from azcp_runtime.source.names import local_path

_TOKEN_BYTES = 16


@dataclass(frozen=True, slots=True)
class Destination:
    """This node's side of the run.

    Attributes:
        path: where its files go.
        held: one byte per file, 1 where this node has it.
        direct: whether files are written with O_DIRECT.
        lock: the descriptor that keeps other runs out; -1 where another rank of the node has it.
    """

    path: Path
    held: bytearray
    direct: bool
    lock: int


def diff_stage(
    ranks: Ranks, options: Options, dest: Path, listing: Listing, notice: Callable[[str], None]
) -> tuple[Diff, Destination]:
    """What moves and from where, the same on every rank, and this node's own state.

    Raises:
        PreflightError: the destination cannot take what is missing, or two nodes share it.
    """
    prepare(dest)
    direct = not options.no_bcast_direct and direct_works(dest)
    if not direct and not options.no_bcast_direct:
        notice(f"{dest} does not take direct writes: writing through the page cache")
    _refuse_shared(ranks, dest)
    held_lock = lock(dest) if ranks.seat.rail == 0 else -1
    check_obstacles(dest, listing.names)
    held = held_files(dest, listing, options.compare, options.filelist)
    _check_space(dest, listing, held)
    return _exchange(ranks, held), Destination(dest, held, direct, held_lock)


def plain_diff(ranks: Ranks, listing: Listing) -> Diff:
    """The diff of empty destinations, for a dry run that looks at none."""
    return classify([ranks.seat.nodes] * len(listing), [0] * len(listing), ranks.seat.nodes)


def _exchange(ranks: Ranks, held: Sequence[int]) -> Diff:
    """Two numbers per file instead of a matrix: how many nodes hold it, and the one that shall send it."""
    seat = ranks.seat
    counts = array("Q", (has if seat.rail == 0 else 0 for has in held))
    nearest = array(
        "Q", (rotated(seat.node, file, seat.nodes) if has else seat.nodes for file, has in enumerate(held))
    )
    return classify(ranks.reduce(nearest, "min"), ranks.reduce(counts, "sum"), seat.nodes)


def _check_space(dest: Path, listing: Listing, held: Sequence[int]) -> None:
    missing = sum(size for size, has in zip(listing.sizes, held, strict=True) if not has)
    if missing <= free_bytes(dest):
        return
    # What a replaced file or a partial of an earlier run occupies is had again.
    root, needed = os.fsencode(dest), 0
    for file, size in enumerate(listing.sizes):
        if not held[file]:
            target = os.path.join(root, local_path(listing.names[file]))
            needed += max(0, size - allocated_bytes(target) - allocated_bytes(partial_path(target)))
    check_space(dest, needed)


def _refuse_shared(ranks: Ranks, dest: Path) -> None:
    """Refuse one folder under two nodes: they would write and rename the same files."""
    seat = ranks.seat
    token = secrets.token_bytes(_TOKEN_BYTES)
    mine = dest / STATE_DIR / f"node-{token.hex()}"
    if seat.rail == 0:
        mine.touch()
    try:
        tokens = ranks.share(b"".join(ranks.gather(seat.node.to_bytes(4, "little") + token)))
        found = set(os.listdir(dest / STATE_DIR))
        step = _TOKEN_BYTES + 4
        for at in range(0, len(tokens), step):
            node = int.from_bytes(tokens[at : at + 4], "little")
            if node != seat.node and f"node-{tokens[at + 4 : at + step].hex()}" in found:
                raise PreflightError(
                    f"{dest} is the same folder on {seat.host} and on {seat.hosts[node]}",
                    cause="DEST lies on a shared file system",
                    remedy="choose a disk of each node's own",
                )
        ranks.barrier()
    finally:
        mine.unlink(missing_ok=True)
