"""Slurm: every task of a step is told the nodes of the step, and which of them is its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import UsageError
from azcp_runtime.launch.hostlist import expand
from azcp_runtime.launch.hosts import Found, checked_hosts

NODES: Final = "SLURM_STEP_NODELIST"
"""The nodes of a step, as a host list."""

INDEX: Final = "SLURM_NODEID"
"""Which of them this one is."""

_TASKS: Final = "SLURM_STEP_NUM_TASKS"
_JOB_NODES: Final = "SLURM_JOB_NUM_NODES"
_STEP: Final = "srun --nodes=N --ntasks-per-node=1 azcp-launch ..."


@dataclass(frozen=True, slots=True)
class Slurm:
    """A step with one task on each node, all of which run the same command.

    Args:
        env: the task's environment, as Slurm made it.
    """

    env: Mapping[str, str]

    @property
    def sought(self) -> str:
        """The variable."""
        return f"Slurm's {NODES}"

    def find(self) -> Found | None:
        """The nodes of the step in Slurm's order.

        Raises:
            UsageError: this is the batch script of several nodes, or a step with more tasks than nodes.
        """
        if not self.env.get(NODES):
            self._refuse_batch_script()
            return None
        hosts = checked_hosts(expand(self.env[NODES]), NODES)
        tasks = self.env.get(_TASKS, "")
        if tasks != str(len(hosts)):
            raise UsageError(
                f"the step has {tasks or 'an unknown number of'} tasks on {len(hosts)} nodes",
                cause="azcp-launch runs once on each node",
                remedy=_STEP,
            )
        index = self.env.get(INDEX, "")
        if not index.isdecimal() or int(index) >= len(hosts):
            raise UsageError(f"{INDEX} is {index!r}, and the step has {len(hosts)} nodes", remedy=_STEP)
        return Found(f"Slurm's step {self._step()}", hosts, int(index))

    def _step(self) -> str:
        return f"{self.env.get('SLURM_JOB_ID', '?')}.{self.env.get('SLURM_STEP_ID', '?')}"

    def _refuse_batch_script(self) -> None:
        """A batch script runs on the first node alone: it would be the only one to get the data."""
        nodes = self.env.get(_JOB_NODES, "")
        if nodes.isdecimal() and int(nodes) > 1:
            raise UsageError(
                f"this is no step of the Slurm job, which has {nodes} nodes",
                cause="the batch script itself runs on the first of them alone",
                remedy=_STEP,
            )
