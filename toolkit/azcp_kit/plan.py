"""The plan for a cluster that you don't have: the planner's balance and memory, and the time predicted."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from azcp_runtime.contract import ExitCode, PlanError, UsageError

from azcp_kit.predict import (
    FORMULA,
    START_S,
    Cluster,
    Forecast,
    Forecasts,
    Pipeline,
    Terms,
    one_pass_terms,
    predict,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class PlanRequest:
    """What to plan for; rates are bytes per second, an empty `memory` or `chunk` is left to the planner."""

    listing: Path
    ranks: int
    rails: int
    memory: str
    egress: float
    fabric: float
    disk: float
    chunk: str = ""


@dataclass(frozen=True)
class Balance:
    """How evenly the bytes are shared among the ranks that download."""

    owners: int
    least_bytes: int
    mean_bytes: float
    most_bytes: int
    spread_percent: float


@dataclass(frozen=True)
class ClusterPlan:
    """The planner's answer and the forecasts that follow from it."""

    files: int
    size_bytes: int
    shards: int
    chunk_bytes: int
    memory_bytes: int
    balance: Balance
    cluster: Cluster
    rails: int
    forecasts: Forecasts
    terms: Terms


def plan_cluster(request: PlanRequest) -> ClusterPlan:
    """Ask the runtime's planner, and predict the time.

    Raises:
        UsageError: the listing or an option is wrong.
        PlanError: the planner failed.
    """
    return read_plan(json.loads(_ask_planner(planner_argv(request))), request)


def planner_argv(request: PlanRequest) -> list[str]:
    """The command that plans `request`."""
    argv = [sys.executable, "-m", "azcp_runtime.planner", "--listing", str(request.listing)]
    argv += ["--ranks", str(request.ranks), "--rails", str(request.rails)]
    argv += ["--bcast-chunk", request.chunk] if request.chunk else []
    return [*argv, "--memory", request.memory] if request.memory else argv


def read_plan(answer: Mapping[str, object], request: PlanRequest) -> ClusterPlan:
    """The plan in the planner's JSON.

    Raises:
        PlanError: it is not what this release of the planner prints.
    """
    try:
        return _plan(answer, request)
    except (KeyError, TypeError, ValueError) as error:
        raise PlanError(
            "the planner's answer is incomplete", cause=f"{type(error).__name__}: {error}"
        ) from error


def plan_json(plan: ClusterPlan) -> dict[str, object]:
    """The plan as JSON for scripts: bytes, seconds, bytes per second."""
    return {
        "files": plan.files,
        "bytes": plan.size_bytes,
        "shards": plan.shards,
        "nodes": plan.cluster.nodes,
        "rails": plan.rails,
        "memory_bytes": plan.memory_bytes,
        "chunk_bytes": plan.chunk_bytes,
        "balance": asdict(plan.balance),
        "rates": {name: value for name, value in asdict(plan.cluster).items() if name != "nodes"},
        "formula": {
            "seconds": FORMULA,
            "start": plan.terms.start_s,
            "busy": {kind.value: seconds for kind, seconds in plan.terms.spans_s.items()},
            "busy_share": plan.terms.busy_share,
            "rounds": plan.terms.rounds_s,
        },
        "forecasts": {name: _forecast_json(forecast) for name, forecast in vars(plan.forecasts).items()},
    }


def _ask_planner(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 - an argument list
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"the planner ended with status {done.returncode}"]
        kind = UsageError if done.returncode == ExitCode.USAGE else PlanError
        raise kind(lines[-1].removeprefix("azcp-planner: "))
    return done.stdout


def _plan(answer: Mapping[str, object], request: PlanRequest) -> ClusterPlan:
    numbers = {name: value for name, value in answer.items() if isinstance(value, int)}
    size_bytes = numbers["bytes"]
    cluster = Cluster(request.ranks // request.rails, request.egress, request.fabric, request.disk)
    balance = _balance(answer)
    pipeline = Pipeline(balance.owners * numbers["chunk_bytes"], numbers["own_slots"], START_S)
    return ClusterPlan(
        files=numbers["files"],
        size_bytes=size_bytes,
        shards=numbers["shards"],
        chunk_bytes=numbers["chunk_bytes"],
        memory_bytes=numbers["memory_bytes"],
        balance=balance,
        cluster=cluster,
        rails=request.rails,
        forecasts=predict(size_bytes, cluster, pipeline),
        terms=one_pass_terms(size_bytes, cluster, pipeline),
    )


def _balance(answer: Mapping[str, object]) -> Balance:
    owners, spread = answer["owners"], answer["spread_percent"]
    if not isinstance(owners, list) or not isinstance(spread, int | float):
        raise TypeError("owners is no array, or spread_percent no number")
    shares = [int(owner["bytes"]) for owner in owners]
    mean = sum(shares) / len(shares) if shares else 0.0
    return Balance(len(shares), min(shares, default=0), mean, max(shares, default=0), float(spread))


def _forecast_json(forecast: Forecast) -> dict[str, object]:
    return {
        "seconds": forecast.seconds,
        "bound_by": forecast.bound_by.value,
        "egress_bytes": forecast.egress_bytes,
    }
