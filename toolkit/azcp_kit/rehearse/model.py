"""What a manifest comes to: pods, in the groups that their controllers count together, in workloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from azcp_kit.rehearse.fields import Fields


class Wish(Enum):
    """What a group's pods are there for."""

    ENDS = "ends well"
    SERVES = "runs until the others are done"
    STAYS = "comes up and stays up"


class Moment(Enum):
    """What is waited for before a group's pods are made."""

    READY = "ready"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which pod it is.

    Args:
        title: what the operator calls it, without the random letters of its name.
        name, namespace, uid: as its metadata has them.
        host, subdomain: what its host name follows from.
        node: where it runs.
        index: its completion index, ordinal or the like.
        labels, annotations: its own, and what its controller adds.
    """

    title: str
    name: str
    namespace: str
    uid: str
    host: str
    subdomain: str
    node: str
    index: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PodPlan:
    """A pod that will be made: which one, and its specification as the controller completes it."""

    identity: Identity
    spec: Fields


@dataclass(frozen=True, slots=True)
class Need:
    """A group that must have come so far first."""

    group: str
    moment: Moment


@dataclass(frozen=True, slots=True)
class Group:
    """Pods that one controller counts together.

    Args:
        name: within the workload.
        pods: in the order of their indexes.
        wish: what they are there for.
        backoff_limit: how many failures it bears; None for a controller that does not count them.
        is_per_index: each pod has its own count.
        is_patient: a failure is told when all pods have ended, and not at once.
        is_ordered: each pod waits until the one before it is ready.
        at_a_time: how many run beside each other; None for all.
        deadline_s: how long it may take.
        needs: other groups that must be ready or done first.
    """

    name: str
    pods: tuple[PodPlan, ...]
    wish: Wish
    backoff_limit: int | None = None
    is_per_index: bool = False
    is_patient: bool = False
    is_ordered: bool = False
    at_a_time: int | None = None
    deadline_s: int | None = None
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class Service:
    """Names for pods.

    Args:
        namespace, name: its own.
        selector: the labels of its pods; empty for none.
        is_headless: its name stands for all pods' addresses, and each pod has a name below it.
        publishes_not_ready: the names are there before the pods are ready.
    """

    namespace: str
    name: str
    selector: Mapping[str, str]
    is_headless: bool
    publishes_not_ready: bool

    def selects(self, identity: Identity) -> bool:
        """Whether the pod is one of its own."""
        own = identity.namespace == self.namespace and bool(self.selector)
        return own and self.selector.items() <= identity.labels.items()


@dataclass(frozen=True, slots=True)
class Made:
    """A Secret or ConfigMap that a controller makes."""

    namespace: str
    name: str
    content: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Workload:
    """One document that makes pods.

    Args:
        title: such as `MPIJob llama`.
        groups: in the order in which they are made.
        deciding: the groups whose end is the workload's.
        any_decides: one of them is enough.
        restarts: how often all of it is made anew after a failure.
        services, secrets, config_maps: what its controller makes beside the pods.
        notices: what the operator should know.
    """

    title: str
    groups: tuple[Group, ...]
    deciding: tuple[str, ...]
    any_decides: bool = False
    restarts: int = 0
    services: tuple[Service, ...] = ()
    secrets: tuple[Made, ...] = ()
    config_maps: tuple[Made, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def pods(self) -> tuple[PodPlan, ...]:
        """All of them."""
        return tuple(pod for group in self.groups for pod in group.pods)
