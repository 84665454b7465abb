"""The variables of a container as the kubelet computes them, before anything of a rehearsal is put in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING
from typing import Final

from azcp_runtime.contract import PreflightError

from azcp_kit.rehearse.expand import expand
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.model import Identity
from azcp_kit.rehearse.quantity import parse_quantity
from azcp_kit.rehearse.store import Content, Store
from azcp_kit.shown import shown

_NAME: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*", re.ASCII)
_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
API_SERVER: Final = {
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "KUBERNETES_SERVICE_PORT_HTTPS": "443",
    "KUBERNETES_PORT": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
    "KUBERNETES_PORT_443_TCP_PORT": "443",
    "KUBERNETES_PORT_443_TCP_ADDR": "10.96.0.1",
}
"""In every pod, whatever enableServiceLinks says; nothing answers there."""


class ContainerConfigError(PreflightError):
    """A container cannot be made from its specification: the pod would wait for ever."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod runs, for the downward API.

    Args:
        identity: which pod it is.
        address: its own.
        host_address: its node's.
        account: its service account.
        cpus, memory_bytes: of the node, which stand for a limit that is absent.
    """

    identity: Identity
    address: str
    host_address: str
    account: str
    cpus: int
    memory_bytes: int


def resolve_environment(container: Fields, place: Place, store: Store) -> dict[str, str]:
    """The container's variables.

    Raises:
        ContainerConfigError: one refers to what is not there.
        UsageError: a field has another type than it should have.
    """
    found: dict[str, str] = {}
    for source in container.each("envFrom"):
        found.update(_all_of(source, place, store))
    for entry in container.each("env"):
        if entry.text("value"):
            # A variable of the pod's own hides the service's of that name from what comes after it.
            found[entry.text("name")] = expand(entry.text("value"), {**API_SERVER, **found})
            continue
        value = _referred(entry.at("valueFrom"), container, place, store) if entry.has("valueFrom") else ""
        if value is not None:
            found[entry.text("name")] = value
    return {**API_SERVER, **found}


def field_value(path: str, place: Place) -> str:
    """A field of the pod, as fieldRef names it.

    Raises:
        ContainerConfigError: there is no such field.
    """
    identity = place.identity
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript:
        own = identity.labels if subscript[1] == "labels" else identity.annotations
        return own.get(subscript[2], "")
    known = {
        "metadata.name": identity.name,
        "metadata.namespace": identity.namespace,
        "metadata.uid": identity.uid,
        "metadata.labels": _lines(identity.labels),
        "metadata.annotations": _lines(identity.annotations),
        "spec.nodeName": identity.node,
        "spec.serviceAccountName": place.account,
        "status.hostIP": place.host_address,
        "status.hostIPs": place.host_address,
        "status.podIP": place.address,
        "status.podIPs": place.address,
    }
    if path not in known:
        raise ContainerConfigError(f"fieldRef {shown(path)} is no field of a pod")
    return known[path]


def resource_value(reference: Fields, container: Fields, place: Place) -> str:
    """A request or limit, in units of the divisor, rounded up."""
    kind, _, resource = reference.text("resource").partition(".")
    own = container.at("resources", kind).raw
    fallback = {"cpu": place.cpus, "memory": place.memory_bytes}.get(resource, 0) if kind == "limits" else 0
    value = parse_quantity(own.get(resource, fallback), reference.path("resource"))
    divisor = parse_quantity(reference.raw.get("divisor") or "1", reference.path("divisor"))
    return str(int((value / (divisor or 1)).to_integral_value(ROUND_CEILING)))


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f'{key}="{value}"' for key, value in sorted(values.items()))


def _all_of(source: Fields, place: Place, store: Store) -> dict[str, str]:
    is_secret = source.has("secretRef")
    reference = source.at("secretRef" if is_secret else "configMapRef")
    content = look_up(store, place, reference.text("name"), is_secret=is_secret)
    if content is None:
        if reference.flag("optional"):
            return {}
        raise _absent(reference.text("name"), is_secret=is_secret)
    names = ((source.text("prefix") + key, value) for key, value in content.items())
    return {name: value.decode(errors="replace") for name, value in names if _NAME.fullmatch(name)}


def _referred(source: Fields, container: Fields, place: Place, store: Store) -> str | None:
    """The value; None where it may be absent and is."""
    if source.has("fieldRef"):
        return field_value(source.at("fieldRef").text("fieldPath"), place)
    if source.has("resourceFieldRef"):
        return resource_value(source.at("resourceFieldRef"), container, place)
    is_secret = source.has("secretKeyRef")
    reference = source.at("secretKeyRef" if is_secret else "configMapKeyRef")
    name, key = reference.text("name"), reference.text("key")
    content = look_up(store, place, name, is_secret=is_secret)
    if content is not None and key in content:
        return content[key].decode(errors="replace")
    if reference.flag("optional"):
        return None
    if content is None:
        raise _absent(name, is_secret=is_secret)
    raise ContainerConfigError(
        f"couldn't find key {shown(key)} in {'Secret' if is_secret else 'ConfigMap'} {shown(name)}"
    )


def look_up(store: Store, place: Place, name: str, *, is_secret: bool) -> Content | None:
    """A Secret or ConfigMap of the pod's own namespace."""
    return (store.secrets if is_secret else store.config_maps).get((place.identity.namespace, name))


def _absent(name: str, *, is_secret: bool) -> ContainerConfigError:
    kind = "secret" if is_secret else "configmap"
    return ContainerConfigError(f'{kind} "{shown(name)}" not found')
