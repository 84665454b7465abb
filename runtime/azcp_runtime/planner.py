"""The plan of a cluster that is not here: ``python -m azcp_runtime.planner --listing FILE --ranks N``."""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from array import array
from pathlib import Path

from azcp_runtime.contract import AzcpError, UsageError
from azcp_runtime.contract.units import parse_size
from azcp_runtime.options import DEFAULT_MEMORY_BYTES
from azcp_runtime.plan.budget import Budget
from azcp_runtime.plan.chunks import Plan
from azcp_runtime.plan.make import PlanRequest, make_plan
from azcp_runtime.plan.presence import AZURE
from azcp_runtime.plan.shards import Cluster
from azcp_runtime.source.listing import Listing, make_listing
from azcp_runtime.source.shardlist import read_shardlist


def main(argv: list[str] | None = None) -> int:
    """Print the plan as JSON; the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        listing = make_listing(read_shardlist(arguments.listing))
        request = _request(arguments)
        began = time.perf_counter()
        plan, budget = make_plan(listing.sizes, array("l", [AZURE]) * len(listing), request)
        seconds = time.perf_counter() - began
    except AzcpError as error:
        print(f"azcp-planner: {error}", file=sys.stderr)
        return error.exit_code
    json.dump(describe(listing, plan, budget, request.cluster) | _cost(seconds), sys.stdout)
    print()
    return 0


def describe(listing: Listing, plan: Plan, budget: Budget, cluster: Cluster) -> dict[str, object]:
    """The plan's figures: files, bytes, owners with their loads, spread and memory."""
    return {
        "files": len(listing),
        "bytes": listing.total_bytes,
        "shards": plan.shards,
        "ranks": cluster.nodes * cluster.rails,
        "rails": cluster.rails,
        "owners": [
            {
                "rank": lane.owner,
                "bytes": lane.total_bytes,
                "chunks": lane.chunks,
                "message_bytes": lane.message_bytes,
            }
            for lane in plan.lanes
        ],
        "spread_percent": spread_percent(plan),
        "chunk_bytes": budget.chunk_bytes,
        "own_slots": budget.own_slots,
        "memory_bytes": budget.memory_bytes,
    }


def spread_percent(plan: Plan) -> float:
    """By how much the heaviest owner exceeds the lightest, in percent of the mean."""
    loads = [lane.total_bytes for lane in plan.lanes]
    mean = sum(loads) / len(loads) if loads else 0.0
    return round(100 * (max(loads) - min(loads)) / mean, 3) if mean else 0.0


def _cost(seconds: float) -> dict[str, object]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"plan_seconds": round(seconds, 3), "max_rss_bytes": peak}


def _request(arguments: argparse.Namespace) -> PlanRequest:
    nodes, left = divmod(arguments.ranks, arguments.rails)
    if left or nodes < 1:
        raise UsageError(f"{arguments.ranks} ranks are no multiple of {arguments.rails} rails")
    downloaders = arguments.download_ranks or arguments.ranks
    if not 1 <= downloaders <= arguments.ranks:
        raise UsageError(f"--download-ranks must be 1 to {arguments.ranks}")
    return PlanRequest(
        Cluster(nodes, arguments.rails, downloaders),
        arguments.memory,
        shard_bytes=arguments.shard_size,
        file_shards=arguments.file_shards,
        chunk_bytes=arguments.bcast_chunk,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="azcp-planner", description=__doc__)
    parser.add_argument("--listing", type=Path, required=True, metavar="FILE", help="TSV: name, size")
    parser.add_argument("--ranks", type=int, required=True, metavar="N")
    parser.add_argument("--rails", type=int, default=1, metavar="N", help="ranks per node")
    parser.add_argument("--memory", type=parse_size, default=DEFAULT_MEMORY_BYTES, metavar="SIZE")
    parser.add_argument("--shard-size", type=parse_size, metavar="SIZE")
    parser.add_argument("--file-shards", type=int, metavar="N")
    parser.add_argument("--bcast-chunk", type=parse_size, metavar="SIZE")
    parser.add_argument("--download-ranks", type=int, metavar="K")
    return parser


if __name__ == "__main__":
    sys.exit(main())
