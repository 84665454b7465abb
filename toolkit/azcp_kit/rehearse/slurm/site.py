"""The Slurm of this machine, if there is one, and where its nodes reach what listens here."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from azcp_runtime.contract import PreflightError

from azcp_kit.shown import shown

_PROGRAMS: Final = ("sbatch", "scontrol", "scancel", "srun")
_ANSWER_S: Final = 30.0
_NODE: Final = re.compile(r"\bNodeAddr=(\S+)")
_ANY_PORT: Final = 9


def has_slurm() -> bool:
    """Whether Slurm's commands are here, and a controller answers them."""
    if any(shutil.which(program) is None for program in _PROGRAMS):
        return False
    try:
        ended = run_slurm(["scontrol", "ping"])
    except PreflightError:
        return False
    return ended.returncode == 0 and " UP" in ended.stdout


def address_for_nodes() -> str:
    """The address of this machine that the nodes reach: that from which it reaches them.

    Raises:
        PreflightError: no node tells an address, or there is no way to any.
    """
    ended = run_slurm(["scontrol", "show", "nodes", "--oneliner"])
    for node in _NODE.findall(ended.stdout):
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            # Of a datagram socket this sends nothing, and tells the route.
            probe.connect((node, _ANY_PORT))
            address = str(probe.getsockname()[0])
            if not address.startswith("127."):
                return address
    raise PreflightError(
        "no node of this Slurm can be reached from here",
        cause=shown(ended.stderr.strip()) or "scontrol show nodes names none that has an address",
        remedy="rehearse on a machine of the cluster's network, or with --image IMAGE on containers",
    )


def run_slurm(
    argv: Sequence[str], env: dict[str, str] | None = None, timeout_s: float = _ANSWER_S
) -> subprocess.CompletedProcess[str]:
    """One of Slurm's commands, to its end, outside of any allocation that this process is in.

    Raises:
        PreflightError: it cannot be started, or does not answer.
    """
    own = os.environ if env is None else env
    clean = {
        name: value for name, value in own.items() if not name.startswith("SLURM_") or name == "SLURM_CONF"
    }
    try:
        return subprocess.run(  # noqa: S603 - an argument list, no shell
            list(argv),
            env=clean,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout_s,
        )
    except OSError as error:
        raise PreflightError(f"{argv[0]} cannot be started", cause=str(error.strerror)) from error
    except subprocess.TimeoutExpired as error:
        raise PreflightError(f"{argv[0]} does not answer within {timeout_s:.0f} s") from error
