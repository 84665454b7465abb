"""azcp-rank: a command in a Slurm step, told its place as torchrun and its like want it, without a shell."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from azcp_runtime.contract import PreflightError, UsageError
from azcp_runtime.launch.discovery.slurm import INDEX, NODES
from azcp_runtime.launch.hostlist import expand
from azcp_runtime.ssh.state import here

USAGE: Final = "azcp-rank PORT [NAME=VALUE ...] -- COMMAND ..."
_USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_RANK: Final = "SLURM_PROCID"


@dataclass(frozen=True, slots=True)
class Ranked:
    """What azcp-rank was asked for.

    Args:
        port: on which the first node's program may wait for the others.
        variables: of the command's own; the place goes over them.
        words: the command.
    """

    port: str
    variables: Mapping[str, str]
    words: Sequence[str]


def become_ranked(argv: Sequence[str]) -> NoReturn:
    """Replace this process by the command.

    Raises:
        UsageError: it was not started by srun, or not as USAGE says.
        PreflightError: the command cannot be started on this node.
    """
    ranked = read_ranked(argv)
    env = ranked_environment(here().env, ranked)
    # execvpe searches PATH as it is here, and it must be the command's own.
    os.environ["PATH"] = env.get("PATH", _USUAL_PATH)
    sys.stdout.flush()
    try:
        os.execvpe(ranked.words[0], list(ranked.words), env)  # noqa: S606 - the user's own argument list
    except OSError as error:
        raise PreflightError(
            f"{ranked.words[0]} cannot be started: {error.strerror}",
            cause=f"PATH is {env.get('PATH', 'not set')}",
            remedy="give the command's full path",
        ) from error


def ranked_environment(env: Mapping[str, str], ranked: Ranked) -> dict[str, str]:
    """The environment of the task, its own variables, and its place.

    WORLD_SIZE is left alone: torchrun makes it from the processes that it starts itself.

    Raises:
        UsageError: Slurm's variables are not there.
    """
    if not env.get(NODES) or not env.get(INDEX, "").isdecimal() or not env.get(_RANK, "").isdecimal():
        raise UsageError("this is no task of a Slurm step", remedy=f"srun ... {USAGE}")
    hosts = expand(env[NODES])
    return {
        **env,
        **ranked.variables,
        "RANK": env[_RANK],
        "NODE_RANK": env[INDEX],
        "NNODES": str(len(hosts)),
        "MASTER_ADDR": hosts[0],
        "MASTER_PORT": ranked.port,
        # What torchrun reads where the options --node-rank, --master-addr and --master-port are not given.
        "PET_NODE_RANK": env[INDEX],
        "PET_MASTER_ADDR": hosts[0],
        "PET_MASTER_PORT": ranked.port,
    }


def read_ranked(argv: Sequence[str]) -> Ranked:
    """The words of the command line.

    Raises:
        UsageError: they are others than USAGE says.
    """
    words = list(argv)
    cut = words.index("--") if "--" in words else 0
    pairs = [word.partition("=") for word in words[1:cut]]
    is_right = cut and words[0].isdecimal() and words[cut + 1 :]
    if not is_right or not all(name and equals for name, equals, _ in pairs):
        raise UsageError("azcp-rank is started otherwise", remedy=USAGE)
    return Ranked(words[0], {name: value for name, _, value in pairs}, words[cut + 1 :])
