"""The plan of a run, made by every rank for itself and compared before anything moves."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from azcp_runtime.contract import PlanError, UsageError
from azcp_runtime.contract.units import format_size
from azcp_runtime.machine import available_memory
from azcp_runtime.mpi.ranks import Ranks, Seat
from azcp_runtime.options import DEFAULT_MEMORY_BYTES, Options
from azcp_runtime.plan.budget import Budget
from azcp_runtime.plan.chunks import Plan
from azcp_runtime.plan.make import PlanRequest, make_plan
from azcp_runtime.plan.presence import Diff
from azcp_runtime.plan.shards import Cluster
from azcp_runtime.planner import spread_percent
from azcp_runtime.source.listing import Listing


def plan_stage(ranks: Ranks, options: Options, listing: Listing, diff: Diff) -> tuple[Plan, Budget]:
    """The plan and the memory it takes, the same on every rank.

    Raises:
        PlanError: it does not fit the memory, or the ranks have planned differently.
    """
    seat = ranks.seat
    request = PlanRequest(
        cluster_of(options, seat),
        agreed_memory(ranks, options),
        shard_bytes=options.shard_size,
        file_shards=options.file_shards,
        chunk_bytes=options.bcast_chunk,
        depth=options.bcast_pipeline,
    )
    plan, budget = make_plan(listing.sizes, diff.origin, request, diff.segments)
    check_same_plan(ranks, plan)
    return plan, budget


def agreed_memory(ranks: Ranks, options: Options) -> int:
    """What each rank may hold in buffers: the smallest node decides for all, so that all plan the same."""
    memory = options.memory or min(DEFAULT_MEMORY_BYTES, available_memory() // 8 // ranks.seat.rails)
    return ranks.reduce(array("Q", [memory]), "min")[0]


def cluster_of(options: Options, seat: Seat) -> Cluster:
    """The cluster as the plan counts it."""
    return Cluster(seat.nodes, seat.rails, downloaders(options, seat))


def check_same_options(ranks: Ranks, options: Options) -> None:
    """Refuse to start where the ranks were not started with the same command.

    Raises:
        UsageError: they were not; each would wait for the others at another place.
    """
    common = replace(options, dest=Path())  # which may be spelled differently on each node
    words = array("Q", hashlib.blake2b(repr(common).encode(), digest_size=16).digest())
    if ranks.reduce(words, "and") != ranks.reduce(words, "or"):
        raise UsageError(
            "the ranks were started with different options", remedy="start every rank with the same command"
        )


def downloaders(options: Options, seat: Seat) -> int:
    """How many ranks read from the source.

    Raises:
        UsageError: more were asked for than there are.
    """
    count = options.download_ranks or seat.size
    if count > seat.size:
        raise UsageError(f"--download-ranks {count} is more than the world's {seat.size} ranks")
    return count


def plan_lines(seat: Seat, listing: Listing, plan: Plan, budget: Budget) -> Iterator[str]:
    """What --dry-run prints: files, bytes, owners, spread and memory."""
    yield f"[plan] {len(listing)} files, {listing.total_bytes} bytes, {plan.shards} shards"
    yield (
        f"[plan] {len(plan.lanes)} owners on {seat.nodes} nodes x {seat.rails} rails, "
        f"spread {spread_percent(plan):.2f}%"
    )
    yield (
        f"[plan] chunks of {format_size(budget.chunk_bytes)}, "
        f"{budget.own_slots} + {budget.lane_slots} slots, {format_size(budget.memory_bytes)} per rank"
    )
    for lane in plan.lanes:
        yield f"[plan] rank {lane.owner}: {lane.total_bytes} bytes in {lane.chunks} chunks"


def plan_figures(listing: Listing, plan: Plan, budget: Budget) -> dict[str, float]:
    """The same for the report; chunks and memory are bytes, memory of one rank."""
    return {
        "files": len(listing),
        "bytes": listing.total_bytes,
        "shards": plan.shards,
        "owners": len(plan.lanes),
        "spread_percent": spread_percent(plan),
        "chunk_bytes": budget.chunk_bytes,
        "own_slots": budget.own_slots,
        "lane_slots": budget.lane_slots,
        "memory_bytes": budget.memory_bytes,
    }


def check_same_plan(ranks: Ranks, plan: Plan) -> None:
    """Refuse to start where two ranks have planned differently.

    Raises:
        PlanError: they have; they run different versions, or were given different options.
    """
    words = array("Q", plan.digest())
    if ranks.reduce(words, "and") != ranks.reduce(words, "or"):
        raise PlanError(
            "the ranks have made different plans",
            cause="different options or versions of azcp-distribute on the nodes",
            remedy="start every rank with the same command and image",
        )
