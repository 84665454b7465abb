"""A pod's specification as values: its containers, how they are restarted, and what stands round them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from azcp_kit.rehearse.expand import expand
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.model import Identity, PodPlan
from azcp_kit.rehearse.probe import Probe, read_probe
from azcp_kit.rehearse.security import Security, read_security
from azcp_kit.rehearse.volumes import Mount, Volume, read_mounts, read_volumes

_GRACE_S: Final = 30


class Restart(Enum):
    """When the kubelet starts a container again."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"

    def applies(self, code: int) -> bool:
        """Whether one that has ended with that code is started again."""
        return self is Restart.ALWAYS or (self is Restart.ON_FAILURE and code != 0)


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a pod.

    Args:
        name, image: as the manifest has them.
        fields: all of its specification, for its variables.
        command, args: None where the image's own is taken.
        workdir: empty for the image's own.
        mounts: in the manifest's order.
        security: how it is confined.
        readiness, startup: its probes.
        is_sidecar: an init container that goes on beside the main ones.
    """

    name: str
    image: str
    fields: Fields
    command: tuple[str, ...]
    args: tuple[str, ...]
    workdir: str
    mounts: tuple[Mount, ...]
    security: Security
    readiness: Probe | None
    startup: Probe | None
    is_sidecar: bool

    def argv(self, variables: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Command and arguments with the variables put in; empty ones leave the image's own."""
        return (
            tuple(expand(word, variables) for word in self.command),
            tuple(expand(word, variables) for word in self.args),
        )


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a plan, understood.

    Args:
        identity: which one.
        fields: its specification.
        init: its init containers in their order, sidecars among them.
        main: its containers.
        volumes: by name.
        restart: of its containers.
        fs_group: whose its volumes are.
        aliases: further lines of its hosts file, names by address.
        searches: domains in which short names are looked up.
        grace_s: between SIGTERM and SIGKILL.
        deadline_s: after which it is ended; None for never.
        service_account: its own.
    """

    identity: Identity
    fields: Fields
    init: tuple[Container, ...]
    main: tuple[Container, ...]
    volumes: Mapping[str, Volume]
    restart: Restart
    fs_group: int | None
    aliases: tuple[tuple[str, tuple[str, ...]], ...]
    searches: tuple[str, ...]
    grace_s: int
    deadline_s: int | None
    service_account: str

    @property
    def containers(self) -> tuple[Container, ...]:
        """All of them, in the order of their start."""
        return (*self.init, *self.main)


def read_pod_plan(plan: PodPlan) -> Pod:
    """The pod that the plan is for.

    Raises:
        UsageError: its specification is none.
    """
    spec = plan.spec
    main = tuple(_container(spec, fields) for fields in spec.each("containers"))
    if not main:
        raise spec.error("containers", "is empty")
    restart = spec.text("restartPolicy") or Restart.ALWAYS.value
    if restart not in {policy.value for policy in Restart}:
        raise spec.error("restartPolicy", f"is '{restart}'", "Always, OnFailure or Never")
    pod = Pod(
        identity=plan.identity,
        fields=spec,
        init=tuple(_container(spec, fields, is_init=True) for fields in spec.each("initContainers")),
        main=main,
        volumes=read_volumes(spec),
        restart=Restart(restart),
        fs_group=spec.at("securityContext").optional_number("fsGroup"),
        aliases=tuple((entry.text("ip"), entry.words("hostnames")) for entry in spec.each("hostAliases")),
        searches=spec.at("dnsConfig").words("searches"),
        grace_s=spec.number("terminationGracePeriodSeconds", _GRACE_S),
        deadline_s=spec.optional_number("activeDeadlineSeconds"),
        service_account=spec.text("serviceAccountName") or "default",
    )
    _expect_volumes(pod)
    return pod


def _expect_volumes(pod: Pod) -> None:
    for container in pod.containers:
        for mount in container.mounts:
            if mount.volume not in pod.volumes:
                raise container.fields.error(
                    "volumeMounts", f"name '{mount.volume}', which is no volume of the pod"
                )


def _container(pod: Fields, fields: Fields, *, is_init: bool = False) -> Container:
    image = fields.text("image")
    if not image:
        raise fields.error("image", "is absent")
    ports = {
        port.text("name"): port.number("containerPort", 0)
        for port in fields.each("ports")
        if port.has("name")
    }
    return Container(
        name=fields.text("name"),
        image=image,
        fields=fields,
        command=fields.words("command"),
        args=fields.words("args"),
        workdir=fields.text("workingDir"),
        mounts=read_mounts(fields),
        security=read_security(pod.at("securityContext"), fields.at("securityContext")),
        readiness=read_probe(fields, "readinessProbe", ports),
        startup=read_probe(fields, "startupProbe", ports),
        is_sidecar=is_init and fields.text("restartPolicy") == Restart.ALWAYS.value,
    )
