"""How long a cluster that you don't have would take, and which of its resources sets the time.

S bytes go to N nodes. The account gives E bytes per second in total, a node's fabric carries F and its disk
writes D. Each node fetches S/N and broadcasts it to the others, so that S(N-1)/N leaves and enters each
node's fabric port, while every disk takes all of S. In one pass the three overlap and the slowest sets the
time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Resource(StrEnum):
    """What can be the bottleneck."""

    ACCOUNT = "account egress"
    FABRIC = "fabric"
    DISK = "disk"


@dataclass(frozen=True)
class Cluster:
    """Rates are bytes per second: `egress` of the account in total, `fabric` and `disk` of each node."""

    nodes: int
    egress: float
    fabric: float
    disk: float


@dataclass(frozen=True)
class Forecast:
    """One way to fill all nodes: its time, what sets it, and the bytes that the account serves."""

    seconds: float
    bound_by: Resource
    egress_bytes: int


@dataclass(frozen=True)
class Forecasts:
    """The three ways side by side."""

    one_pass: Forecast
    two_stages: Forecast
    every_node_downloads: Forecast


def predict(size_bytes: int, cluster: Cluster) -> Forecasts:
    """The time of each way to put `size_bytes` on every node of `cluster`."""
    nodes = cluster.nodes
    fetch_s = size_bytes / cluster.egress
    fabric_s = size_bytes * (nodes - 1) / nodes / cluster.fabric
    write_s = size_bytes / cluster.disk
    one_pass = {Resource.ACCOUNT: fetch_s, Resource.FABRIC: fabric_s, Resource.DISK: write_s}
    every_node = {Resource.ACCOUNT: nodes * fetch_s, Resource.DISK: write_s}
    return Forecasts(
        one_pass=_slowest(one_pass, size_bytes),
        two_stages=_one_after_the_other(fetch_s, fabric_s, write_s, size_bytes),
        every_node_downloads=_slowest(every_node, nodes * size_bytes),
    )


def _slowest(spans_s: dict[Resource, float], egress_bytes: int) -> Forecast:
    bound_by = max(spans_s, key=lambda resource: spans_s[resource])
    return Forecast(spans_s[bound_by], bound_by, egress_bytes)


def _one_after_the_other(fetch_s: float, fabric_s: float, write_s: float, egress_bytes: int) -> Forecast:
    """Download everything, then broadcast and write: the longer of the two stages is what to improve."""
    second = _slowest({Resource.FABRIC: fabric_s, Resource.DISK: write_s}, egress_bytes)
    bound_by = Resource.ACCOUNT if fetch_s >= second.seconds else second.bound_by
    return Forecast(fetch_s + second.seconds, bound_by, egress_bytes)
