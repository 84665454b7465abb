"""azcp-launch: one command from one node to all, first the data, then the user's own program."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType
from typing import Final, NoReturn

from azcp_runtime.contract import InterruptedRunError
from azcp_runtime.launch.discovery.find import describe, discover
from azcp_runtime.launch.discovery.surveyed import survey
from azcp_runtime.launch.hosts import check_own_name
from azcp_runtime.launch.job import Job, job_of, say
from azcp_runtime.launch.node_file import check_node_file
from azcp_runtime.launch.options import parse_launch
from azcp_runtime.ssh.init import fork_if_first
from azcp_runtime.ssh.seed import forget, keys_from_seed, read_seed
from azcp_runtime.ssh.state import LAUNCHER, here, recall, remember, state_dir

_OF_THE_COMMAND: Final = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
"""They do not end azcp-launch; it passes them on to the user's command."""


def remember_launcher() -> None:
    """Keep what azcp-launch was started with, before it is scrubbed: its node may have no azcp-sshd."""
    remember(state_dir(os.environ), LAUNCHER, here())


def main(argv: Sequence[str]) -> int:
    """Both phases, or this node's part in them; the exit code of the job."""
    env = dict(os.environ)
    state = state_dir(env)
    container = recall(state, LAUNCHER) or here()
    launch = parse_launch(argv, env)
    if launch.node_file is not None:
        check_node_file(launch.node_file)
    node = survey(container.env)
    found = discover(launch, node)
    say(describe(found, launch, node))
    if found.hosts:
        check_own_name(os.uname().nodename)
    job = job_of(launch, found, container, env, state)
    if launch.key_seed is not None:
        job = replace(job, keys=keys_from_seed(read_seed(launch.key_seed)))
    fork_if_first(_OF_THE_COMMAND)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stopped)
    try:
        return _part(job)
    finally:
        if job.keys:
            forget(state)


def _part(job: Job) -> int:
    """This node's."""
    if job.found.own:
        from azcp_runtime.launch.follow import follow

        return follow(job)
    from azcp_runtime.launch.lead import lead

    return lead(job)


def _stopped(number: int, _frame: FrameType | None) -> NoReturn:
    # As process 1 of a container it would else not even be heard.
    raise InterruptedRunError(f"stopped by {signal.Signals(number).name}")
