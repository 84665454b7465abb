"""What a run says of its fabric and its destination, as the quick look needs it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import ENV_SIMULATE_NODES
from azcp_runtime.mpi.ranks import Seat
from azcp_runtime.options import Options

_OF_A_JOB: Final = ("SLURM_JOB_ID", "KUBERNETES_SERVICE_HOST")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run says of its fabric and its destination.

    Attributes:
        require_rdma: --require-rdma.
        allow_tcp: --allow-tcp.
        rail_devices: --rail-devices.
        memory: --memory.
        rails: ranks on this node.
        has_peers: there are other nodes to reach.
        dest: this node's destination; None where its place says nothing.
    """

    require_rdma: bool
    allow_tcp: bool
    rail_devices: tuple[str, ...]
    memory: int | None
    rails: int
    has_peers: bool
    dest: Path | None


def asked_of(options: Options, seat: Seat, env: Mapping[str, str]) -> Asked:
    """What the run asks of the node of this rank.

    Args:
        options: the command line.
        seat: this rank.
        env: the environment.
    """
    # Simulated nodes share a disk by design, and on somebody's own machine there is but one.
    is_cluster = seat.nodes > 1 or any(name in env for name in _OF_A_JOB)
    has_place = is_cluster and not env.get(ENV_SIMULATE_NODES) and not options.dry_run
    return Asked(
        require_rdma=options.require_rdma,
        allow_tcp=options.allow_tcp,
        rail_devices=options.rail_devices or (),
        memory=options.memory,
        rails=seat.rails,
        has_peers=seat.nodes > 1,
        dest=Path(os.path.abspath(options.dest)) if has_place else None,
    )
