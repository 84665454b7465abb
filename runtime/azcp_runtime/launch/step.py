"""azcp-step: the user's command on one node, in the container's own environment and folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from azcp_runtime.contract import PreflightError, UsageError
from azcp_runtime.ssh.state import CONTAINER, LAUNCHER, Surroundings, here, recall, state_dir

USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands in the job, for torchrun and its like.

    Args:
        rank: of the node, from 0.
        nodes: how many there are.
        master: the first node, by the name that the user gave.
        port: on which the first node's program may wait for the others.
    """

    rank: int
    nodes: int
    master: str
    port: int


def become_command(argv: Sequence[str]) -> NoReturn:
    """Replace this process by the command: azcp-step RANK NNODES MASTER PORT COMMAND...

    Raises:
        UsageError: it was not started by azcp-launch.
        PreflightError: the command cannot be started on this node.
    """
    place, command = read_step(argv)
    node = recall(state_dir(os.environ), CONTAINER, LAUNCHER) or here()
    env = step_environment(node, place)
    try:
        os.chdir(node.cwd)
    except OSError as error:  # Docker enters it as root, before it takes the container's uid on
        print(f"azcp-step: {node.cwd} cannot be entered ({error.strerror}), / it is", file=sys.stderr)
        os.chdir("/")
    # execvpe searches PATH as it is here, and it must be the container's.
    os.environ["PATH"] = env.get("PATH", USUAL_PATH)
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, env)  # noqa: S606 - the user's own argument list, no shell
    except OSError as error:
        raise PreflightError(
            f"{command[0]} cannot be started: {error.strerror}",
            cause=f"PATH is {env.get('PATH', 'not set')}",
            remedy="give the command's full path in the image",
        ) from error


def step_environment(node: Surroundings, place: Place) -> dict[str, str]:
    """The container's environment as it was, and the node's place.

    WORLD_SIZE is left alone: torchrun makes it from the processes that it starts itself.
    """
    return {
        **node.env,
        "RANK": str(place.rank),
        "NODE_RANK": str(place.rank),
        "NNODES": str(place.nodes),
        "MASTER_ADDR": place.master,
        "MASTER_PORT": str(place.port),
        # What torchrun reads where the options --node-rank, --master-addr and --master-port are not given.
        "PET_NODE_RANK": str(place.rank),
        "PET_MASTER_ADDR": place.master,
        "PET_MASTER_PORT": str(place.port),
    }


def read_step(argv: Sequence[str]) -> tuple[Place, list[str]]:
    """What azcp-launch wrote.

    Raises:
        UsageError: somebody else did.
    """
    words = list(argv)
    numbers = (*words[:2], *words[3:4])
    if len(words) <= len(("RANK", "NNODES", "MASTER", "PORT")) or not all(n.isdecimal() for n in numbers):
        raise UsageError("azcp-step is started by azcp-launch", remedy="azcp-launch SOURCE DEST -- COMMAND")
    return Place(int(words[0]), int(words[1]), words[2], int(words[3])), words[4:]
