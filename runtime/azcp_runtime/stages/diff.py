"""[diff]: the destination is checked, and the nodes tell each other what they already hold."""

from __future__ import annotations

import os
import secrets
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import STATE_DIR, PreflightError
from azcp_runtime.disk.holdings import held_files
from azcp_runtime.disk.kept import Kept, kept_by_journal, take_stock
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
from azcp_runtime.mpi.ranks import Ranks, Seat
from azcp_runtime.options import Options
from azcp_runtime.plan.presence import Diff, classify
from azcp_runtime.source.listing import Listing
from azcp_runtime.source.location import BlobLocation, Location
from azcp_runtime.source.names import local_path
from azcp_runtime.stages.presence import exchange, resumed_line

_TOKEN_BYTES: Final = 16
_NODE_TOKEN: Final = struct.Struct(f"<II{_TOKEN_BYTES}s")
_NAMED: Final = 4


@dataclass(frozen=True, slots=True)
class Destination:
    """This node's side of the run.

    Attributes:
        path: where its files go.
        held: one byte per file, 1 where this node has it.
        kept: what its journal vouches for, in whole files and in parts.
        direct: whether files are written with O_DIRECT.
        lock: the descriptor that keeps other runs out; -1 where another rank of the node has it.
    """

    path: Path
    held: bytearray
    kept: Kept
    direct: bool
    lock: int

    def release(self) -> None:
        """Let other runs in."""
        if self.lock >= 0:
            os.close(self.lock)


def diff_stage(
    ranks: Ranks,
    options: Options,
    dest: Path,
    listing: Listing,
    location: Location,
    notice: Callable[[str], None],
) -> tuple[Diff, Destination]:
    """What moves and from where, the same on every rank, and this node's own state.

    Raises:
        PreflightError: the destination cannot take what is missing, or two nodes share it.
    """
    prepare(dest)
    direct = not options.no_bcast_direct and direct_works(dest)
    _refuse_shared(ranks, dest)
    is_first = ranks.seat.rail == 0
    held_lock = lock(dest) if is_first else -1
    kept = _kept(ranks, dest, listing, source_identity(location), forget=options.compare == "none")
    prefix = location.prefix if isinstance(location, BlobLocation) else ""
    held = held_files(dest, listing, options.compare, options.filelist, prefix, kept.whole)
    if is_first:  # what is true of the node needs to be looked at once
        check_obstacles(dest, listing.names)
        _check_space(dest, listing, held)
    if not options.no_bcast_direct:
        _tell_buffered(ranks, notice, direct=direct)
    diff = exchange(ranks, listing, held, kept)
    if line := resumed_line(diff, ranks.seat.nodes):
        notice(line)
    return diff, Destination(dest, held, kept, direct, held_lock)


def plain_diff(ranks: Ranks, listing: Listing) -> Diff:
    """The diff of empty destinations, for a dry run that looks at none."""
    return classify([ranks.seat.nodes] * len(listing), [0] * len(listing), ranks.seat.nodes)


def source_identity(location: Location) -> bytes:
    """What tells one source from another in the journal, whatever the credential and the address."""
    if isinstance(location, BlobLocation):
        parts = ["blob", location.account, location.container, location.prefix]
    else:
        parts = ["directory", str(location)]
    return "\0".join([*parts, ""]).encode("utf-8", "surrogateescape")


def _kept(ranks: Ranks, dest: Path, listing: Listing, source: bytes, *, forget: bool) -> Kept:
    """What earlier runs left, looked at by the node's first rank for all of them."""
    kept = take_stock(dest, listing, source, forget=forget) if ranks.seat.rail == 0 else None
    ranks.barrier(node_only=True)
    return kept or kept_by_journal(dest, listing, source)


def _check_space(dest: Path, listing: Listing, held: Sequence[int]) -> None:
    missing = sum(size for size, has in zip(listing.sizes, held, strict=True) if not has)
    if missing <= free_bytes(dest):
        return
    # A partial of an earlier run has its blocks; a file that is replaced keeps its own until the rename.
    root, needed = os.fsencode(dest), 0
    for file, size in enumerate(listing.sizes):
        if not held[file]:
            partial = partial_path(os.path.join(root, local_path(listing.names[file])))
            needed += max(0, size - allocated_bytes(partial))
    check_space(dest, needed)


def _tell_buffered(ranks: Ranks, notice: Callable[[str], None], *, direct: bool) -> None:
    """One line for all nodes whose destination takes no direct writes."""
    rows = ranks.gather(bytes([direct]))
    seat = ranks.seat
    nodes = sorted({seat.node_of[rank] for rank, row in enumerate(rows) if row == b"\0"})
    if nodes:
        names = ", ".join(seat.hosts[node] for node in nodes[:_NAMED])
        notice(
            f"DEST takes no direct writes on {len(nodes)} of {seat.nodes} nodes ({names}): "
            "writing through the page cache there"
        )


def _refuse_shared(ranks: Ranks, dest: Path) -> None:
    """Refuse one folder under two nodes, and two folders on one.

    Two nodes would write and rename the same files. Ranks of one node each bring a part of a file
    that one of them publishes for all.
    """
    seat = ranks.seat
    token = secrets.token_bytes(_TOKEN_BYTES)
    mine = dest / STATE_DIR / f"node-{token.hex()}"
    try:
        if seat.rail == 0:
            mine.touch()
        rows = ranks.share(b"".join(ranks.gather(_NODE_TOKEN.pack(seat.node, seat.rail, token))))
        found = set(os.listdir(dest / STATE_DIR))
        for node, rail, other in _NODE_TOKEN.iter_unpack(rows):
            if rail == 0:
                _check_token(seat, dest, node, is_here=f"node-{other.hex()}" in found)
        ranks.barrier()
    except OSError as error:
        raise PreflightError(f"cannot write to {dest}: {error.strerror}") from error
    finally:
        with suppress(OSError):  # what was in the way is told already
            mine.unlink(missing_ok=True)


def _check_token(seat: Seat, dest: Path, node: int, *, is_here: bool) -> None:
    if is_here and node != seat.node:
        raise PreflightError(
            f"{dest} is the same folder on {seat.host} and on {seat.hosts[node]}",
            cause="DEST lies on a shared file system",
            remedy="choose a disk of each node's own",
        )
    if not is_here and node == seat.node:
        raise PreflightError(
            f"{dest} on {seat.host} is not the folder of that node's first rank",
            cause="ranks of one node must share DEST",
            remedy="give all of them the same DEST, or start one rank per node",
        )
