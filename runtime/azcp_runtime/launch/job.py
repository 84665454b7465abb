"""One run of azcp-launch: its command line, the nodes that were found, and what it was started in."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from azcp_runtime.contract import ENV_SAS
from azcp_runtime.contract.image import ENV_NODE_NAME, ENV_SSH_PORT
from azcp_runtime.launch.hosts import Found
from azcp_runtime.launch.node_file import write_node_file
from azcp_runtime.launch.options import Launch
from azcp_runtime.options import parse_options
from azcp_runtime.ssh.keys import JobKeys
from azcp_runtime.ssh.state import Surroundings


@dataclass(frozen=True, slots=True)
class Job:
    """One run.

    Args:
        launch: its command line.
        found: its nodes.
        container: what the container was started with.
        env: what is left of that for our own processes.
        state: the folder that is writable for sure.
        keys: the key pair that was made from --key-seed.
    """

    launch: Launch
    found: Found
    container: Surroundings
    env: Mapping[str, str]
    state: Path
    keys: JobKeys | None = None

    @property
    def leader(self) -> str:
        """The first node, as the user calls it."""
        return self.found.hosts[0]


def job_of(launch: Launch, found: Found, container: Surroundings, env: Mapping[str, str], state: Path) -> Job:
    """The job with a SAS of SOURCE in the environment: on a command line every user of a node reads it."""
    own = {**env, ENV_SSH_PORT: str(launch.port)}
    source = parse_options(launch.distribute).source
    address, _, query = source.partition("?")
    if address.startswith(("http://", "https://")) and query:
        own[ENV_SAS] = query
        launch = replace(
            launch, distribute=[address if word == source else word for word in launch.distribute]
        )
    return Job(launch, found, container, own, state)


def note_node(job: Job) -> None:
    """Write --node-file, where it is wished for."""
    if job.launch.node_file is not None:
        write_node_file(job.launch.node_file, job.env[ENV_NODE_NAME].strip())


def say(text: str) -> None:
    """One line of talk."""
    print(f"azcp-launch: {text}", file=sys.stderr, flush=True)
