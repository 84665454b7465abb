"""The plan as tables for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from azcp_kit.predict import FORMULA
from azcp_kit.units import format_rate, format_seconds, format_size

if TYPE_CHECKING:
    from azcp_kit.plan import ClusterPlan


def print_plan(plan: ClusterPlan) -> None:
    """Print the plan on standard output."""
    Console(highlight=False).print(plan_tables(plan))


def plan_tables(plan: ClusterPlan) -> Group:
    """What is to move, how it is shared, and how long each way takes."""
    return Group(
        _headline(plan), "", _balance(plan), "", _forecasts(plan), _assumptions(plan), _formula(plan)
    )


def _headline(plan: ClusterPlan) -> Text:
    rails = f", {plan.rails} rails each" if plan.rails > 1 else ""
    return Text(
        f"{plan.files:,} files, {format_size(plan.size_bytes)} in {plan.shards:,} shards"
        f" to {plan.cluster.nodes:,} nodes{rails}",
        style="bold",
    )


def _balance(plan: ClusterPlan) -> Table:
    share = plan.balance
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row(
        "downloaded per rank",
        f"{format_size(share.least_bytes)} to {format_size(share.most_bytes)},"
        f" mean {format_size(share.mean_bytes)}, spread {share.spread_percent:.2f} %",
    )
    table.add_row("ranks that download", f"{share.owners:,}")
    table.add_row(
        "memory per rank", f"{format_size(plan.memory_bytes)} in chunks of {format_size(plan.chunk_bytes)}"
    )
    return table


def _forecasts(plan: ClusterPlan) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("Predicted")
    for name in ("Time", "Account serves"):
        table.add_column(name, justify="right")
    table.add_column("Bound by")
    ways = {
        "one pass (azcp-distribute)": plan.forecasts.one_pass,
        "download, then broadcast": plan.forecasts.two_stages,
        "every node downloads all": plan.forecasts.every_node_downloads,
    }
    for name, forecast in ways.items():
        served = format_size(forecast.egress_bytes)
        table.add_row(name, format_seconds(forecast.seconds), served, forecast.bound_by.value)
    return table


def _assumptions(plan: ClusterPlan) -> Text:
    cluster = plan.cluster
    return Text(
        f"at {format_rate(cluster.egress)} from the account in total, {format_rate(cluster.fabric)} of fabric"
        f" and {format_rate(cluster.disk)} of disk per node",
        style="dim",
    )


def _formula(plan: ClusterPlan) -> Text:
    terms = plan.terms
    busy = ", ".join(f"{format_seconds(seconds)} {kind.value}" for kind, seconds in terms.spans_s.items())
    return Text(
        f"one pass = {FORMULA}\n"
        f"         = {format_seconds(terms.start_s)} + max({busy}) / {terms.busy_share:.2f}"
        f" + {format_seconds(terms.rounds_s)}\n"
        "start: connect, list, compare; u: how busy the slowest is, with few chunks of an owner under way;\n"
        "rounds: the first chunks and the last, when two of the three wait",
        style="dim",
    )
