"""One examination: alone, or on every rank of a world."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from azcp_runtime.contract import ENV_SIMULATE_NODES, PreflightError, UsageError
from azcp_runtime.doctor.bandwidth import measure
from azcp_runtime.doctor.check import Check
from azcp_runtime.doctor.destination import check_destination, missing_folders, remove_folders
from azcp_runtime.doctor.gather import NodeReport, gather_reports, mark_slow
from azcp_runtime.doctor.node import NodeFacts, check_node
from azcp_runtime.doctor.options import DoctorOptions
from azcp_runtime.doctor.transport import chosen_pml, mapped_libmpi
from azcp_runtime.doctor.world_size import broken_world, check_world, refused_world
from azcp_runtime.mpi.launch import launched_by_mpi
from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.mpi.solo import Solo
from azcp_runtime.preflight.counters import check_carrier, received_bytes
from azcp_runtime.preflight.source import check_source, shared_access
from azcp_runtime.preflight.wish import fabric_wish
from azcp_runtime.source.location import parse_source

_PATIENCE_S: Final = 120.0
_OWN: Final = (("RANK", "0"), ("LOCAL_SIZE", "1"))
"""What mpirun says of a rank before MPI is up, and what a rank alone is."""


def join(env: Mapping[str, str]) -> tuple[Ranks, Check | None]:
    """The world, and why it is this process alone although a launcher wanted more."""
    if not launched_by_mpi(env):
        return Solo(env), None
    from azcp_runtime.mpi.world import World

    try:
        return World(env, _PATIENCE_S, math.inf), None
    except (PreflightError, UsageError) as error:  # the rest of the examination may explain it
        return Solo(env), refused_world(error)


def reports_of_all(
    facts: NodeFacts, options: DoctorOptions, ranks: Ranks, env: Mapping[str, str], refused: Check | None
) -> list[NodeReport]:
    """The reports of all nodes, on rank 0; an empty list elsewhere.

    Raises:
        BroadcastError: the nodes do not reach each other.
    """
    before = received_bytes(facts.devices)
    fabric = measure(ranks)
    after = received_bytes(facts.devices)
    location = parse_source(options.source) if options.source is not None else None
    access = shared_access(ranks, location, options.auth, options.sas_file, env) if location else ()
    if ranks.seat.rail:  # what is true of the node needs to be looked at by one of its ranks
        return gather_reports(ranks, None)
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    pml = chosen_pml(mapped_libmpi(maps))
    checks = [refused or check_world(ranks.seat, options.expect_ranks, env)]
    checks += check_node(facts, options, ranks.seat.rails, env, pml)
    if fabric:
        wish = fabric_wish(facts.devices, env, required=options.require_rdma, allowed=options.allow_tcp)
        carrier = check_carrier(fabric.received_bytes, before, after, is_required=wish.is_required)
        checks += [fabric.check, *([carrier] if carrier and not wish.is_allowed else [])]
    checks += [*access[:1], *check_source(location), *access[1:]] if location else []
    dest = _dest(options, ranks, env)
    made = missing_folders(dest) if dest else []
    try:
        checks += check_destination(dest, options.need, ranks.hear) if dest else []
        # All nodes have ended their trials when this has ended: one may have used another's folder.
        return mark_slow(gather_reports(ranks, checks))
    finally:
        remove_folders(made)


def report_without_mpi(
    facts: NodeFacts, options: DoctorOptions, env: Mapping[str, str], what: str
) -> list[NodeReport]:
    """This node's report, where MPI did not come up."""
    if env.get("OMPI_COMM_WORLD_LOCAL_RANK", "0") != "0":
        return []
    rank, rails = (int(env.get(f"OMPI_COMM_WORLD_{name}", default)) for name, default in _OWN)
    checks = (broken_world(what), *check_node(facts, options, rails, env, ""))
    return [NodeReport(rank // rails, os.uname().nodename, checks)]


def _dest(options: DoctorOptions, ranks: Ranks, env: Mapping[str, str]) -> Path | None:
    """This node's destination: DIR, or a folder of its own in it where nodes are simulated."""
    if options.dest is None:
        return None
    dest = Path(os.path.abspath(options.dest))
    return dest / f"node{ranks.seat.node}" if env.get(ENV_SIMULATE_NODES) else dest
