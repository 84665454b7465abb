"""azcp-orted: what the remote shell starts on each node, mpirun's daemon in a clean environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from azcp_runtime.contract.image import ENV_SSH_PORT, OPENMPI
from azcp_runtime.isolate import mpi_environment, node_variables
from azcp_runtime.launch.hosts import check_own_name
from azcp_runtime.ssh.state import CONTAINER, recall, state_dir

ORTED: Final = f"{OPENMPI}/bin/orted"


def become_orted(argv: Sequence[str]) -> NoReturn:
    """Replace this process by Open MPI's daemon.

    Raises:
        PreflightError: the node's host name would end it, or no folder is writable.
    """
    check_own_name(os.uname().nodename)
    state = state_dir(os.environ)
    os.execve(ORTED, [ORTED, *argv], daemon_environment(os.environ, state, os.geteuid()))  # noqa: S606


def daemon_environment(env: Mapping[str, str], state: Path, uid: int) -> dict[str, str]:
    """What the daemon and its ranks run in: a remote shell's environment lacks what the container has."""
    container = recall(state, CONTAINER)
    if container is None:
        return mpi_environment(env, state, uid)
    known = {**node_variables(container.env), **env}
    # A daemon starts the next ones itself, by the same port.
    return mpi_environment(known, state, uid) | {ENV_SSH_PORT: str(container.port)}
