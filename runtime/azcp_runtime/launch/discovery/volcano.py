"""Volcano: its env and svc plugins give each pod the host names of every task, and its own index."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import UsageError
from azcp_runtime.launch.discovery.surveyed import Surveyed
from azcp_runtime.launch.hostlist import expand
from azcp_runtime.launch.hosts import Found, checked_hosts
from azcp_runtime.launch.index import index_of_name, own_index

_TASK: Final = re.compile(r"VC_(\w+)_HOSTS", re.ASCII)


@dataclass(frozen=True, slots=True)
class Volcano:
    """VC_<TASK>_HOSTS, a list with commas for each task.

    Args:
        node: what is known of this one.
        is_every_node: whether the user says that each node runs this command.
    """

    node: Surveyed
    is_every_node: bool

    @property
    def sought(self) -> str:
        """The variables."""
        return "Volcano's VC_<TASK>_HOSTS"

    def find(self) -> Found | None:
        """The task that this node belongs to, or the other one where this node is its master.

        Raises:
            UsageError: which task is meant, or which of its nodes this one is, cannot be told.
        """
        tasks = self._tasks()
        if not tasks:
            return None
        own = self._own_task(tasks)
        others = [name for name in tasks if name != own]
        if len(tasks[own]) > 1 or not others or self.is_every_node:
            return self._one_of(own, tasks[own])
        if len(others) > 1:
            raise UsageError(
                f"this node is all of the Volcano task {own.lower()}, and there are {_names(others)}",
                remedy="name the nodes with --hosts",
            )
        return Found(f"Volcano's VC_{others[0]}_HOSTS", tasks[others[0]])

    def _tasks(self) -> Mapping[str, Sequence[str]]:
        matches = ((_TASK.fullmatch(name), value) for name, value in sorted(self.node.env.items()))
        return {
            match[1]: checked_hosts(expand(value), match[0])
            for match, value in matches
            if match and value.strip()
        }

    def _own_task(self, tasks: Mapping[str, Sequence[str]]) -> str:
        with_us = [task for task, hosts in tasks.items() if index_of_name(self.node.name, hosts) is not None]
        candidates = with_us or list(tasks)
        if len(candidates) > 1:
            raise UsageError(
                f"the host name {self.node.name} does not say which task of {_names(candidates)} it is of",
                remedy="name the nodes with --hosts",
            )
        return candidates[0]

    def _one_of(self, task: str, hosts: Sequence[str]) -> Found:
        own = own_index(self.node.env, self.node.name, hosts)
        return Found(f"Volcano's VC_{task}_HOSTS", hosts, own)


def _names(tasks: Sequence[str]) -> str:
    return ", ".join(task.lower() for task in tasks)
