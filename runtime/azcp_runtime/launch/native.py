"""Phase 2 for programs with an mpirun of their own: once, here, that mpirun reaching the nodes by our ssh."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.contract.image import ENV_SSH_PORT
from azcp_runtime.isolate import command
from azcp_runtime.launch.discovery.operator import VARIABLES
from azcp_runtime.launch.fanout import Running, Task, run_everywhere
from azcp_runtime.launch.job import Job, say
from azcp_runtime.launch.peers import Loss
from azcp_runtime.launch.phases import Nodes
from azcp_runtime.launch.step import USUAL_PATH
from azcp_runtime.launch.steps import start_here

_AGENTS: Final = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")
"""Of Open MPI 4 and 5."""


def run_native(job: Job, nodes: Nodes, lost: Future[Loss]) -> int:
    """The command's exit status.

    Args:
        job: its command is run in the container's own environment and folder.
        nodes: all of them, written down where the command's mpirun finds them.
        lost: a node whose loss ends the command.

    Raises:
        PreflightError: it cannot be started.
    """
    env = native_environment(job.container.env, job.launch.port, nodes)
    words = list(job.launch.words)

    async def start() -> Running:
        try:
            return await start_here(
                [found_program(words[0], env), *words[1:]], env, _folder(job.container.cwd)
            )
        except OSError as error:
            raise PreflightError(
                f"{words[0]} cannot be started: {error.strerror}",
                cause=f"PATH is {env.get('PATH', 'not set')}",
                remedy="give the command's full path in the image",
            ) from error

    return run_everywhere([Task("this node", start)], say, lost)


def native_environment(container: Mapping[str, str], port: int, nodes: Nodes) -> dict[str, str]:
    """The container's environment, in which an mpirun of the image reaches the nodes by the job's ssh.

    Its hostfile is the operator's where there is one, else ours.
    """
    env = {**container, **dict.fromkeys(_AGENTS, command("azcp-ssh")[0]), ENV_SSH_PORT: str(port)}
    if not any(name in env for name in VARIABLES):
        env |= dict.fromkeys(VARIABLES[:2], str(nodes.hostfile))
    return env


def found_program(name: str, env: Mapping[str, str]) -> str:
    """The program's path by the PATH of that environment; the name itself where it is not there."""
    return shutil.which(name, path=env.get("PATH", USUAL_PATH)) or name


def _folder(cwd: str) -> str:
    if os.path.isdir(cwd) and os.access(cwd, os.X_OK):
        return cwd
    say(f"{cwd} cannot be entered, / it is")  # Docker enters it as root, before it takes the uid on
    return "/"
