"""Removes what rehearsals have left in the engine that were killed outright."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path
from typing import Any, Final

from azcp_kit.engine import Engine, errors_told
from azcp_kit.shown import shown

LABEL: Final = "io.azcp.rehearse"
"""On everything that a rehearsal makes: the machine and the process that have to remove it."""

log = logging.getLogger(__name__)


def own_labels() -> dict[str, str]:
    """Of what this process makes."""
    return {LABEL: f"{socket.gethostname()}:{os.getpid()}"}


def remove_orphans(engine: Engine) -> None:
    """Remove what processes of this machine have made that are no more.

    Raises:
        PreflightError: the engine failed.
    """
    api: Any = engine.client.api
    chosen = {"label": LABEL}
    with errors_told("the engine does not list what it has"):
        containers = api.containers(all=True, filters=chosen)
        volumes = api.volumes(filters=chosen).get("Volumes") or []
        networks = api.networks(filters=chosen)
        images = api.images(filters=chosen)
    for container in filter(_is_orphan, containers):
        engine.remove(container["Id"])
    with errors_told("what a killed rehearsal has left cannot be removed"):
        for volume in filter(_is_orphan, volumes):
            api.remove_volume(volume["Name"], force=True)
        for network in filter(_is_orphan, networks):
            api.remove_network(network["Id"])
        for image in filter(_is_orphan, images):
            api.remove_image(image["Id"], force=True)


def _is_orphan(entry: dict[str, Any]) -> bool:
    host, _, pid = str((entry.get("Labels") or {}).get(LABEL, "")).rpartition(":")
    is_ours = host == socket.gethostname() and pid.isdecimal()
    if is_ours and not Path("/proc", pid).exists():
        log.info(
            "removing %s, which a rehearsal that was killed has left",
            shown(str(entry.get("Name") or entry.get("Id"))),
        )
        return True
    return False
