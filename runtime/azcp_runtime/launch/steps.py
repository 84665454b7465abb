"""Phase 2 on the nodes: over ssh on the others, as a child on our own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from azcp_runtime.launch.fanout import Running, Task
from azcp_runtime.launch.lines import Lines
from azcp_runtime.launch.phases import Nodes, step_argv
from azcp_runtime.ssh.state import state_dir

if TYPE_CHECKING:
    from azcp_runtime.ssh.keys import JobKeys

_ENDED_BY_SIGNAL: Final = 128


class OwnNode:
    """A step on this very node; there may be no azcp-sshd here."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child

    async def wait(self) -> int:
        """Its exit status, as a shell says it."""
        code = await self._child.wait()
        return code if code >= 0 else _ENDED_BY_SIGNAL - code

    def send(self, number: signal.Signals) -> None:
        """To all of its group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, number)

    def drop(self) -> None:
        """End it now."""
        self.send(signal.SIGKILL)


async def start_here(
    argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: str | None = None
) -> Running:
    """Start a command as our child, in a group of its own.

    Args:
        argv: its words.
        env: another environment than ours.
        cwd: another folder.
    """
    child = await asyncio.create_subprocess_exec(
        *argv, env=env, cwd=cwd, stdin=asyncio.subprocess.DEVNULL, process_group=0
    )
    return OwnNode(child)


async def start_there(argv: Sequence[str], address: str, port: int, keys: JobKeys) -> Running:
    """Start a step through the ssh server of another node.

    Raises:
        PreflightError: the node cannot be reached, or does not let us in.
    """
    from azcp_runtime.ssh.client import Peer, own_user, start_command

    return await start_command(Peer(address, port, own_user()), keys, shlex.join(argv), Lines(1), Lines(2))


def step_tasks(nodes: Nodes, port: int, master_port: int, words: Sequence[str]) -> list[Task]:
    """The user's command on all nodes.

    Args:
        nodes: rank i is the i-th.
        port: of the nodes' ssh servers.
        master_port: on which the first node's program may wait for the others.
        words: the command.
    """
    keys = None
    tasks = []
    for rank, (host, address) in enumerate(nodes.addresses.items()):
        argv = step_argv(nodes, rank, master_port, words)
        if host == nodes.own:
            tasks.append(Task(host, partial(start_here, argv)))
            continue
        keys = keys or _keys()
        tasks.append(Task(host, partial(start_there, argv, address, port, keys)))
    return tasks


def _keys() -> JobKeys:
    from azcp_runtime.ssh.keys import find_keys

    state: Path = state_dir(os.environ)
    return find_keys(os.environ, state)
