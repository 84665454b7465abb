"""Under which names a pod is found, and from when: what the cluster's DNS and the hosts file would say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from azcp_kit.rehearse.model import Service
from azcp_kit.rehearse.pod import Pod

DOMAIN: Final = "cluster.local"
_HEAD: Final = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""


@dataclass(frozen=True, slots=True)
class Names:
    """A pod's names.

    Args:
        at_once: those that are there as soon as it has an address.
        when_ready: those that are there while it is ready.
    """

    at_once: tuple[str, ...]
    when_ready: tuple[str, ...]


def names_of(pod: Pod, services: Iterable[Service], searches: Sequence[str]) -> Names:
    """The pod's names.

    Args:
        pod: which one.
        services: all there are.
        searches: domains in which some pod looks up short names.
    """
    at_once: dict[str, None] = {}
    when_ready: dict[str, None] = {}
    for service in services:
        if not service.selects(pod.identity):
            continue
        found = at_once if service.publishes_not_ready else when_ready
        found.update(dict.fromkeys(_forms(service.name, service.namespace)))
        if service.is_headless and pod.identity.subdomain == service.name:
            domain = f"{service.name}.{service.namespace}.svc.{DOMAIN}"
            short = [pod.identity.host] if domain in searches else []
            full = f"{pod.identity.host}.{service.name}"
            found.update(dict.fromkeys([*_forms(full, service.namespace), *short]))
    return Names(tuple(at_once), tuple(name for name in when_ready if name not in at_once))


def _forms(name: str, namespace: str) -> list[str]:
    """A name as it may be written from within its own namespace."""
    return [name, f"{name}.{namespace}", f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.{DOMAIN}"]


def hosts_text(pod: Pod, address: str, others: Mapping[str, Iterable[str]]) -> str:
    """The pod's hosts file: the kubelet's own lines, then what DNS would say of pods that are ready.

    Args:
        pod: whose file it is.
        address: its own.
        others: names by address, of pods whose names come and go.
    """
    identity = pod.identity
    if identity.subdomain:
        full = f"{identity.host}.{identity.subdomain}.{identity.namespace}.svc.{DOMAIN}"
        own = f"{address}\t{full}\t{identity.host}\n"
    else:
        own = f"{address}\t{identity.host}\n"
    aliases = "".join(f"{ip}\t{' '.join(names)}\n" for ip, names in pod.aliases)
    resolved = "".join(f"{ip}\t{' '.join(names)}\n" for ip, names in others.items() if names)
    return f"{_HEAD}{own}{aliases}{resolved}"
