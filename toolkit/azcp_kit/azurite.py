"""A local Blob endpoint: finds Azurite, runs it for the length of a with block, and always stops it."""

from __future__ import annotations

import base64
import http.client
import os
import secrets
import shutil
import socket
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

from azcp_runtime.contract import PreflightError

from azcp_kit.child import start, stop

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence

ACCOUNT: Final = "devstoreaccount1"
LOOPBACK: Final = "127.0.0.1"
START_TIMEOUT_S: Final = 30.0
POLL_S: Final = 0.05
LOG_TAIL_LINES: Final = 5


@dataclass(frozen=True)
class Azurite:
    """A Blob endpoint that answers; `key` is the shared key in base64, of every account it has."""

    endpoint: str
    account: str
    key: str = field(repr=False)
    log: Path


def find_azurite() -> list[str] | None:
    """The argv that starts Azurite's Blob service, or None without Node.js or Azurite."""
    script = Path(sys.prefix, "azurite", "node_modules", ".bin", "azurite-blob")
    node = shutil.which("node")
    return [node, str(script)] if node and script.exists() else None


@contextmanager
def run_azurite(
    folder: Path, port: int = 0, host: str = LOOPBACK, accounts: Sequence[str] = (ACCOUNT,)
) -> Iterator[Azurite]:
    """Run Azurite with its data under `folder` until the block ends, whichever way it ends.

    Args:
        folder: made if absent; holds the blobs and azurite.log, and stays afterwards.
        port: 0 takes a free one.
        host: the address of this machine that it listens on.
        accounts: their names; the first is that of the endpoint.

    Raises:
        PreflightError: Azurite is not installed, or it did not answer in time.
    """
    argv = find_azurite()
    if argv is None:
        raise PreflightError(
            "the Azurite Blob emulator is not installed",
            cause="no node on PATH, or npm was missing when the environment was made",
            remedy="install Node.js and run `make clean venv`",
        )
    folder.mkdir(parents=True, exist_ok=True)
    port = port or _free_port(host)
    # A key of this run's own: nobody else on the machine can use the endpoint, and no key lies in the source.
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    azurite = Azurite(f"http://{host}:{port}/{accounts[0]}", accounts[0], key, folder / "azurite.log")
    process = _start([*argv, "--blobHost", host, "--blobPort", str(port)], folder, azurite, accounts)
    try:
        _wait_until_it_answers(process, azurite.endpoint, azurite.log)
        yield azurite
    finally:
        stop(process)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise PreflightError(
                f"the Blob emulator cannot listen on {host}",
                cause=str(error.strerror),
                remedy="it must be an address of this very machine",
            ) from error
        return int(probe.getsockname()[1])


def _start(
    argv: list[str], folder: Path, azurite: Azurite, accounts: Sequence[str]
) -> subprocess.Popen[bytes]:
    # The version check compares dates of the service's API: it would tie the SDK's release to Azurite's.
    options = ["--silent", "--skipApiVersionCheck", "--disableTelemetry", "--location", str(folder)]
    keys = ";".join(f"{account}:{azurite.key}" for account in accounts)
    environment = os.environ | {"AZURITE_ACCOUNTS": keys}
    with azurite.log.open("wb") as log:
        return start([*argv, *options], environment, stdout=log, stderr=log)


def _wait_until_it_answers(process: subprocess.Popen[bytes], endpoint: str, log: Path) -> None:
    address = urlsplit(endpoint)
    port = address.port
    deadline = time.monotonic() + START_TIMEOUT_S
    while not _answers(address):
        if process.poll() is not None:
            raise PreflightError(
                f"Azurite ended with status {process.returncode} instead of answering on port {port}",
                cause=_tail(log),
                remedy=f"read {log}",
            )
        if time.monotonic() > deadline:
            raise PreflightError(
                f"Azurite did not answer on port {port} within {START_TIMEOUT_S:.0f} s", remedy=f"read {log}"
            )
        time.sleep(POLL_S)


def _answers(address: SplitResult) -> bool:
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=1)
    try:
        connection.request("GET", f"{address.path}?comp=list")
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def _tail(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-LOG_TAIL_LINES:])
