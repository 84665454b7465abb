"""Phase 2 on the nodes: over ssh on the others, as a child on our own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from azcp_runtime.launch.fanout import Running, Task, run_everywhere
from azcp_runtime.launch.lines import Lines
from azcp_runtime.launch.network import is_local
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


async def start_here(argv: Sequence[str]) -> Running:
    """Start a step as our child, in a group of its own."""
    child = await asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.DEVNULL, process_group=0)
    return OwnNode(child)


async def start_there(argv: Sequence[str], address: str, port: int, keys: JobKeys) -> Running:
    """Start a step through the ssh server of another node.

    Raises:
        PreflightError: the node cannot be reached, or does not let us in.
    """
    from azcp_runtime.ssh.client import Peer, own_user, start_command

    return await start_command(Peer(address, port, own_user()), keys, shlex.join(argv), Lines(1), Lines(2))


def run_steps(
    nodes: Nodes, port: int, master_port: int, words: Sequence[str], say: Callable[[str], None]
) -> int:
    """The user's command on all nodes; its first exit status that is not 0.

    Args:
        nodes: rank i is the i-th.
        port: of the nodes' ssh servers.
        master_port: on which the first node's program may wait for the others.
        words: the command.
        say: where a failure is told.
    """
    keys = None
    tasks = []
    for rank, (host, address) in enumerate(nodes.addresses.items()):
        argv = step_argv(nodes, rank, master_port, words)
        if is_local(address):
            tasks.append(Task(host, partial(start_here, argv)))
            continue
        keys = keys or _keys()
        tasks.append(Task(host, partial(start_there, argv, address, port, keys)))
    return run_everywhere(tasks, say)


def _keys() -> JobKeys:
    from azcp_runtime.ssh.keys import find_keys

    state: Path = state_dir(os.environ)
    return find_keys(os.environ, state)
