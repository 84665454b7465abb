"""The base's own sshd under a configuration of ours: for sites that want OpenSSH and nothing else."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn

from azcp_runtime.contract import PreflightError
from azcp_runtime.contract.image import ENV_STATE_DIR
from azcp_runtime.ssh.keys import JobKeys, make_host_key
from azcp_runtime.ssh.state import write_private

_PRIVILEGE_SEPARATION: Final = Path("/run/sshd")
_USUAL_PATH: Final = "/usr/sbin:/usr/local/sbin:/sbin:/usr/bin:/usr/local/bin:/bin"
SSHD_ENVIRONMENT: Final = MappingProxyType({"PATH": _USUAL_PATH})
"""All that sshd needs."""


def sshd_config(keys: JobKeys, host_key: Path, certificate: Path | None, listen: str, port: int) -> str:
    """The configuration, each setting for a reason that the base's own would miss."""
    lines = [
        f"Port {port}",
        *([f"ListenAddress {listen}"] if listen else []),
        f"HostKey {host_key}",
        *([f"HostCertificate {certificate}"] if certificate else []),
        # Absolute, and without a look at the modes of a home folder that a mount has made.
        f"AuthorizedKeysFile {keys.folder / 'authorized_keys'}",
        "StrictModes no",
        # PAM refuses accounts that are locked, and whoever lacks the capabilities that it uses.
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PubkeyAuthentication yes",
        "PermitRootLogin prohibit-password",
        "PidFile none",
        "DisableForwarding yes",
        "PermitTTY no",
        "PermitUserEnvironment no",
        "PermitUserRC no",
        "PrintMotd no",
        # A tree of daemons opens many at once, and a refused one ends the job.
        "MaxStartups 512",
        "LoginGraceTime 30",
        "ClientAliveInterval 30",
        "ClientAliveCountMax 10",
        # The sessions do not see the container's environment: this is how our commands find it.
        f"SetEnv {ENV_STATE_DIR}={keys.folder.parent}",
    ]
    return "\n".join(lines) + "\n"


def find_sshd() -> Path:
    """The base's sshd.

    Raises:
        PreflightError: the image has none.
    """
    found = shutil.which("sshd", path=_USUAL_PATH)
    if not found:
        raise PreflightError(
            "the image has no sshd, and was built to use the base's",
            remedy="build it with --ssh bundled or --ssh package",
        )
    return Path(found)


def become_sshd(keys: JobKeys, state: Path, listen: str, port: int) -> NoReturn:
    """Replace this process by the base's sshd in the foreground, its log on standard error.

    Raises:
        PreflightError: there is none, or its folder cannot be made.
    """
    argv = sshd_argv(keys, state, listen, port)
    os.execve(argv[0], argv, dict(SSHD_ENVIRONMENT))  # noqa: S606


def sshd_argv(keys: JobKeys, state: Path, listen: str, port: int) -> list[str]:
    """The base's sshd in the foreground, with its host key and its configuration written for it.

    Raises:
        PreflightError: there is none, or its folder cannot be made.
    """
    sshd = find_sshd()
    if " " in str(state):
        raise PreflightError(
            f"sshd cannot use the folder {state}", remedy=f"set {ENV_STATE_DIR} without spaces"
        )
    if os.geteuid() == 0:
        _make_separation_folder()
    host_key, certificate = make_host_key(keys)
    config = state / "sshd_config"
    write_private(config, sshd_config(keys, host_key, certificate, listen, port).encode())
    # sshd re-executes itself, hence the absolute path.
    return [str(sshd), "-D", "-e", "-f", str(config)]


async def serve_until(argv: Sequence[str], ready: Callable[[], None], stopped: asyncio.Event) -> None:
    """Run sshd as a child until an event.

    Args:
        argv: of sshd_argv.
        ready: called once it was started.
        stopped: the event.
    """
    child = await asyncio.create_subprocess_exec(*argv, env=dict(SSHD_ENVIRONMENT))
    ready()
    waits: set[asyncio.Future[Any]] = {
        asyncio.ensure_future(child.wait()),
        asyncio.ensure_future(stopped.wait()),
    }
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    if child.returncode is None:
        child.terminate()
        await child.wait()


def _make_separation_folder() -> None:
    # At start, not at build: /run is often an empty tmpfs by then.
    try:
        _PRIVILEGE_SEPARATION.mkdir(0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise PreflightError(
            f"sshd needs {_PRIVILEGE_SEPARATION}, which cannot be made: {error.strerror}",
            remedy="mount an emptyDir or a tmpfs at /run, or build the image with --ssh bundled",
        ) from error
