"""Fixtures of the tests that need a Docker engine: its client and the base images."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import docker as docker_sdk
import pytest
from docker import DockerClient

from tests.lab import docker_engine, rootfs
from tests.lab.bases import Bases, cache_folder
from tests.lab.containers import remove_leftovers
from tests.lab.requirements import missing

# Between two lines of a build's output; the whole build has a limit of its own.
ANSWER_TIMEOUT_S = 300


@pytest.fixture(scope="session")
def docker() -> Iterator[DockerClient]:
    """The client of an engine, one for all tests; nothing that they label outlives them."""
    if reason := docker_engine.lacking():
        missing("docker", reason)
    with (
        docker_engine.engine(cache_folder() / "docker"),
        closing(docker_sdk.from_env(timeout=ANSWER_TIMEOUT_S)) as client,
    ):
        remove_leftovers(client)
        yield client
        remove_leftovers(client)


@pytest.fixture(scope="session")
def bases(docker: DockerClient) -> Bases:
    """Base images: called with a name, such as debian12, it gives the reference."""
    if reason := rootfs.lacking():
        missing("docker", f"no base image can be made: {reason}")
    return Bases(docker, cache_folder())
