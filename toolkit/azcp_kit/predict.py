"""How long a cluster that you don't have would take, and which of its resources sets the time.

S bytes go to N nodes. The account gives E bytes per second in total, a node's fabric carries F and its disk
writes D. Each node fetches S/N and broadcasts it to the others, so that S(N-1)/N leaves and enters each
node's fabric port, while every disk takes all of S. In one pass the three overlap, and the slowest sets the
time. It is a pipeline of rounds: each of the K owners fetches a chunk of c bytes, which takes Kc/E together,
broadcasts it, which takes Kc(N-1)/N/F, and all is written, Kc/D. The slowest waits for the first round of
those before it, and those after it still have the last round to do. In between it is not busy all the time
either: an owner has a few slots for chunks, and where two resources are nearly as slow as each other, now and
then all slots wait for the other one. That is a closed queueing network of so many chunks; exact mean value
analysis gives the share u of the time in which the slowest is busy: 4 of 5 for 4 slots and two equal ones,
nearly all where one is far slower. The fabric counts twice in it, as the port that sends a chunk and as the
one that receives it, where N-2 of N-1 senders are others. Before all that the account is listed:

    T = start + max(S/E, S(N-1)/N/F, S/D) / u + (Kc/E + Kc(N-1)/N/F + Kc/D - the largest of these three)

Measured on shaped links, E/F in Mb/s and N: 64/64 2, 4, 8 took 27.7, 32.5, 32.7 s, and this says 26.0, 28.2,
34.4 s where the bare maximum says 25.3 s; 64/48 took 19.8, 22.1, 29.5 s, and this says 17.8, 23.8, 27.7 s.
Where the fabric alone is the bound, it says too little: 128/48 with 4 and 8 nodes took 24.0 and 30.2 s, not
20.1 and 24.8 s, 3 s of them to start on a machine that all nodes share.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

START_S: Final = 0.6
"""Until the first byte flows: the first connection, the first page of the listing, the comparison. Measured
on a machine at rest with few files; 524 files of a real account took azcp-cluster 0.61 s."""

FORMULA: Final = "start + max(S/E, S(N-1)/N/F, S/D) / u + rounds"


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


@dataclass(frozen=True)
class Pipeline:
    """How the pass is cut: Kc, a chunk of every owner; the slots of an owner; seconds until the first byte.

    With `slots` of 0 the slowest resource is taken to be busy all the time.
    """

    round_bytes: int = 0
    slots: int = 0
    start_s: float = 0.0


@dataclass(frozen=True)
class Terms:
    """The terms of the time of one pass: start, the slowest of `spans_s` over `busy_share`, and rounds."""

    start_s: float
    spans_s: dict[Resource, float]
    busy_share: float
    rounds_s: float


def one_pass_terms(size_bytes: int, cluster: Cluster, pipeline: Pipeline) -> Terms:
    """The terms of the formula for `size_bytes` on every node."""
    spans_s = _spans_s(size_bytes, cluster)
    # A data set of less than a round is one round.
    rounds_s = _spans_s(min(size_bytes, pipeline.round_bytes), cluster).values()
    others = max(0, cluster.nodes - 2) / max(1, cluster.nodes - 1)
    receive_s = spans_s[Resource.FABRIC] * others
    share = busy_share((*spans_s.values(), receive_s), pipeline.slots)
    return Terms(pipeline.start_s, spans_s, share, sum(rounds_s) - max(rounds_s))


def busy_share(demands_s: Sequence[float], customers: int) -> float:
    """The share of the time in which the slowest station of a closed queueing network is busy.

    Exact mean value analysis (Reiser and Lavenberg, 1980); a few hundredths too low where service is steady.
    """
    queues = [0.0] * len(demands_s)
    throughput = 0.0
    for inside in range(1, customers + 1):
        waits_s = [demand * (1 + queue) for demand, queue in zip(demands_s, queues, strict=True)]
        throughput = inside / sum(waits_s) if any(waits_s) else 0.0
        queues = [throughput * wait for wait in waits_s]
    return throughput * max(demands_s) or 1.0


def predict(size_bytes: int, cluster: Cluster, pipeline: Pipeline = Pipeline()) -> Forecasts:
    """The time of each way to put `size_bytes` on every node of `cluster`."""
    nodes, start_s = cluster.nodes, pipeline.start_s
    terms = one_pass_terms(size_bytes, cluster, pipeline)
    fetch_s, write_s = terms.spans_s[Resource.ACCOUNT], terms.spans_s[Resource.DISK]
    second = {kind: terms.spans_s[kind] for kind in (Resource.FABRIC, Resource.DISK)}
    every_node = {Resource.ACCOUNT: nodes * fetch_s, Resource.DISK: write_s}
    slowed = {kind: seconds / terms.busy_share for kind, seconds in terms.spans_s.items()}
    return Forecasts(
        one_pass=_slowest(slowed, size_bytes, start_s + terms.rounds_s),
        two_stages=_one_after_the_other(fetch_s, second, size_bytes, start_s),
        every_node_downloads=_slowest(every_node, nodes * size_bytes, start_s),
    )


def _spans_s(size_bytes: int, cluster: Cluster) -> dict[Resource, float]:
    """How long each resource is busy with so many bytes."""
    nodes = cluster.nodes
    return {
        Resource.ACCOUNT: size_bytes / cluster.egress,
        Resource.FABRIC: size_bytes * (nodes - 1) / nodes / cluster.fabric,
        Resource.DISK: size_bytes / cluster.disk,
    }


def _slowest(spans_s: dict[Resource, float], egress_bytes: int, more_s: float) -> Forecast:
    bound_by = max(spans_s, key=lambda resource: spans_s[resource])
    return Forecast(spans_s[bound_by] + more_s, bound_by, egress_bytes)


def _one_after_the_other(
    fetch_s: float, second_s: dict[Resource, float], egress_bytes: int, start_s: float
) -> Forecast:
    """Download everything, then broadcast and write: the longer of the two stages is what to improve."""
    second = _slowest(second_s, egress_bytes, 0.0)
    bound_by = Resource.ACCOUNT if fetch_s >= second.seconds else second.bound_by
    return Forecast(start_s + fetch_s + second.seconds, bound_by, egress_bytes)
