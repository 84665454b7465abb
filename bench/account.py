"""A fast stand-in for a storage account: nginx serves range GETs by sendfile and lists blobs from a file."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nginx import AccountUnavailableError, configure, container_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_START_DEADLINE_S: Final = 10.0
_POLL_S: Final = 0.02


@dataclass(frozen=True)
class Account:
    """A running account."""

    url: str
    """Of the container, without a slash at the end."""
    certificate: Path | None
    """The self-signed certificate that clients have to trust; None over http."""
    pid: int
    """Of nginx's master process."""


def free_port(address: str = "127.0.0.1") -> int:
    """A TCP port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serve(folder: Path, root: Path, *, tls: bool = False, address: str = "127.0.0.1") -> Iterator[Account]:
    """Serve the blobs under `root` on loopback until the block ends."""
    port = free_port(address)
    command = configure(folder, root, address=address, port=port, tls=tls)
    with running(command):
        certificate = folder / "cert.pem" if tls else None
        yield Account(container_url(address, port, tls=tls), certificate, master_pid(folder))


@contextmanager
def running(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server for the length of the block and end it by its process id."""
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=_START_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def master_pid(folder: Path) -> int:
    """The process id of the nginx that was started below `folder`, once it listens."""
    pid_file = folder / "nginx.pid"
    deadline_s = time.monotonic() + _START_DEADLINE_S
    while time.monotonic() < deadline_s:
        # nginx writes it after its sockets are open.
        if pid_file.exists() and (pid := pid_file.read_text().strip()):
            return int(pid)
        time.sleep(_POLL_S)
    raise AccountUnavailableError(f"nginx did not start in {_START_DEADLINE_S:g} s, see {folder}/error.log")


def cpu_seconds(master: int) -> float:
    """CPU seconds that the workers of an nginx have used so far."""
    return sum(_cpu_seconds(pid) for pid in _children(master))


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
