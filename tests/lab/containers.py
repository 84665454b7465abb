"""Containers of the tests: bounded in time, labelled with the run that owns them, removed in any case."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from docker import DockerClient
from docker.models.containers import Container

OWNER: Final = "azcp-kit.lab.pid"
END_TIMEOUT_S: Final = 120


@dataclass(frozen=True)
class Ended:
    """How a container's command ended, and what it said."""

    status: int
    stdout: str
    stderr: str


def labels() -> dict[str, str]:
    """Of everything that a test makes in the engine: the run that has to remove it."""
    return {OWNER: str(os.getpid())}


@contextmanager
def created(client: DockerClient, image: str, argv: Sequence[str], **options: Any) -> Iterator[Container]:  # noqa: ANN401 - passed on to docker-py
    """A container that is not started yet and does not outlive the block; options are docker-py's."""
    container = client.containers.create(image, list(argv), labels=labels(), **options)
    try:
        yield container
    finally:
        container.remove(force=True, v=True)


def run(
    client: DockerClient,
    image: str,
    argv: Sequence[str],
    timeout_s: float = END_TIMEOUT_S,
    **options: Any,  # noqa: ANN401 - passed on to docker-py
) -> Ended:
    """Run a command in a container to its end, behind the image's entrypoint unless options replace it.

    Raises:
        requests.exceptions.ConnectionError: it has not ended within `timeout_s` seconds.
        docker.errors.APIError: it cannot be started.
    """
    with created(client, image, argv, **options) as container:
        container.start()
        status = int(container.wait(timeout=timeout_s)["StatusCode"])
        out, err = (container.logs(stdout=first, stderr=not first) for first in (True, False))
        return Ended(status, out.decode(errors="replace"), err.decode(errors="replace"))


def remove_leftovers(client: DockerClient) -> None:
    """Remove the containers and networks of this run, and those of runs that were killed."""
    for container in client.containers.list(all=True, filters={"label": OWNER}):
        if _is_over(container.labels[OWNER]):
            container.remove(force=True, v=True)
    for network in client.networks.list(filters={"label": OWNER}):
        if _is_over(network.attrs["Labels"][OWNER]):
            network.remove()


def _is_over(owner: str) -> bool:
    return owner == str(os.getpid()) or not Path("/proc", owner).exists()
