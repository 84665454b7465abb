"""Which of its node's ranks a process is, as its launcher says before MPI is up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import ENV_SIMULATE_NODES

_MPIRUN: Final = ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE")
_SLURM: Final = ("SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE")
_EVEN: Final = re.compile(r"(\d{1,4})(?:\(x\d+\))?", re.ASCII)
"""As Slurm writes that all nodes have as many tasks: 2(x4)."""


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """A rank's place on its node.

    Attributes:
        rail: its index there.
        rails: how many there are.
    """

    rail: int
    rails: int


def local_place(env: Mapping[str, str]) -> LocalPlace | None:
    """The place of this process; None where the launcher does not say it."""
    for rank, size in (_MPIRUN, _SLURM):
        even = _EVEN.fullmatch(env.get(size, ""))
        if env.get(rank, "").isdecimal() and even:
            return _simulated(env, LocalPlace(int(env[rank]), int(even[1])))
    return None


def _simulated(env: Mapping[str, str], place: LocalPlace) -> LocalPlace:
    """The same where the ranks of one machine count as several nodes, one after the other."""
    nodes = env.get(ENV_SIMULATE_NODES, "")
    if not nodes.isdecimal() or not int(nodes) or place.rails % int(nodes):
        return place
    rails = place.rails // int(nodes)
    return LocalPlace(place.rail % rails, rails)
