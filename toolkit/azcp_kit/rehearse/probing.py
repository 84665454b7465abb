"""Asks a container's probe, as the kubelet would from the node."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from typing import Any, Final

from azcp_runtime.contract import PreflightError

from azcp_kit.engine import errors_told
from azcp_kit.rehearse.probe import Probe

_POLL_S: Final = 0.05
_GOOD: Final = range(200, 400)


def connects(address: str, probe: Probe) -> bool:
    """Whether somebody takes a connection on the probe's port."""
    try:
        socket.create_connection((address, probe.port), probe.limit_s).close()
    except OSError:
        return False
    return True


def responds(address: str, probe: Probe) -> bool:
    """Whether a GET of the probe's path is answered with success; the certificate is not looked at."""
    connection = http.client.HTTPConnection(address, probe.port, timeout=probe.limit_s)
    if probe.is_https:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(address, probe.port, timeout=probe.limit_s, context=context)
    try:
        connection.request("GET", probe.path or "/")
        return connection.getresponse().status in _GOOD
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()


def succeeds(api: Any, name: str, probe: Probe) -> bool:  # noqa: ANN401 - docker-py's client
    """Whether the probe's command ends with 0 within its time.

    Args:
        api: the engine's.
        name: of the container that it runs in.
        probe: an exec probe.
    """
    deadline = time.monotonic() + probe.limit_s
    try:
        with errors_told("a probe cannot be run"):
            made = api.exec_create(name, list(probe.argv), stdout=False, stderr=False)["Id"]
            api.exec_start(made, detach=True)
            while (state := api.exec_inspect(made))["Running"]:
                if time.monotonic() > deadline:
                    return False
                time.sleep(_POLL_S)
    except PreflightError:
        return False  # the container ends while it is asked, or has no such program
    return bool(state["ExitCode"] == 0)
