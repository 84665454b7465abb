"""Everything about one container's start as one value, decided before the engine is asked for anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from azcp_kit.rehearse.account import Emulator
from azcp_kit.rehearse.environment import ContainerConfigError, Place, resolve_environment
from azcp_kit.rehearse.fabric import words_without_rdma
from azcp_kit.rehearse.pod import Container
from azcp_kit.rehearse.store import Store


@dataclass(frozen=True, slots=True)
class Image:
    """An image that is there: its id, and what of its config decides about a start."""

    id: str
    user: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A volume, or a part of one, in a container."""

    volume: str
    path: str
    part: str
    is_read_only: bool


@dataclass(frozen=True, slots=True)
class Launch:
    """A container to be started.

    Args:
        container: whose start it is.
        image: its id.
        entrypoint, command: empty for the image's own; the image's command goes with its entrypoint.
        environment: beside the image's own.
        user: empty for the image's own.
        mounts: in the order of the manifest.
    """

    container: Container
    image: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    user: str
    mounts: tuple[Seen, ...]


def assemble(container: Container, image: Image, place: Place, store: Store, emulator: Emulator) -> Launch:
    """How the container is started.

    Raises:
        ContainerConfigError: the kubelet would not start it.
    """
    refusal = container.security.refusal(image.user)
    if refusal:
        raise ContainerConfigError(refusal)
    variables = resolve_environment(container.fields, place, store)
    command, args = container.argv(variables)
    environment = emulator.variables(variables, (*command, *args))
    return Launch(
        container=container,
        image=image.id,
        entrypoint=emulator.words(words_without_rdma(command)),
        command=emulator.words(words_without_rdma(args)),
        environment={**environment, "HOSTNAME": place.identity.host},
        user=container.security.user(image.user),
        mounts=tuple(
            Seen(mount.volume, mount.path, mount.part(variables), mount.is_read_only)
            for mount in container.mounts
        ),
    )
