"""What the ways of discovery look at, read once: the container's environment, its host name, its domain."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOSTS_FILE: Final = Path("/etc/hosts")


@dataclass(frozen=True, slots=True)
class Surveyed:
    """One node, as its own programs see it.

    Args:
        env: the container's environment as it was, not what is left of it for our own processes.
        name: the host name's first label.
        domain: what follows it in the full name; empty where the node does not know one.
    """

    env: Mapping[str, str]
    name: str
    domain: str


def survey(env: Mapping[str, str], hosts_file: Path = HOSTS_FILE) -> Surveyed:
    """What there is to see here."""
    name, _, domain = os.uname().nodename.partition(".")
    try:
        text = hosts_file.read_text(encoding="utf-8", errors="replace")
    except OSError:  # an image without one, on an engine that does not write it either
        text = ""
    return Surveyed(env, name, domain or domain_of(name, text))


def domain_of(name: str, hosts: str) -> str:
    """The domain of a host in the text of /etc/hosts.

    The kubelet writes "ADDRESS NAME.SUBDOMAIN.NAMESPACE.svc.ZONE NAME" for a pod that has a subdomain.
    """
    for line in hosts.splitlines():
        for word in line.partition("#")[0].split()[1:]:
            first, _, domain = word.partition(".")
            if first == name and domain:
                return domain
    return ""
