"""[tune]: the plan again, with the chunk and the window that a probe has found to be better."""

from __future__ import annotations

from dataclasses import replace

from azcp_runtime.mpi.ranks import Ranks
from azcp_runtime.options import Options
from azcp_runtime.plan.budget import Budget
from azcp_runtime.plan.chunks import Plan
from azcp_runtime.plan.make import demand
from azcp_runtime.plan.presence import Diff
from azcp_runtime.source.listing import Listing
from azcp_runtime.stages.diff import Destination
from azcp_runtime.stages.plan import agreed_memory, cluster_of, plan_stage
from azcp_runtime.tune.stage import Tuned, is_wanted, tune


def tune_stage(
    ranks: Ranks,
    options: Options,
    listing: Listing,
    diff: Diff,
    destination: Destination,
    planned: tuple[Plan, Budget],
) -> tuple[Plan, Budget, Tuned | None]:
    """The plan that is carried out, and what the probe found where there was one.

    Raises:
        BroadcastError: a broadcast did not end.
    """
    plan, default = planned
    if not is_wanted(options, ranks.seat.nodes, sum(lane.total_bytes for lane in plan.lanes)):
        return plan, default, None
    agreed = replace(options, memory=agreed_memory(ranks, options))
    need = demand(listing.sizes, diff.origin, cluster_of(options, ranks.seat), diff.segments)
    tuned = tune(ranks, agreed, need, destination, plan, default)
    if tuned.chosen != default:
        pinned = replace(agreed, bcast_chunk=tuned.chosen.chunk_bytes, bcast_pipeline=tuned.chosen.lane_slots)
        plan, default = plan_stage(ranks, pinned, listing, diff)
    return plan, default, tuned
