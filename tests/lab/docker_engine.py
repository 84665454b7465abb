"""A Docker engine: the one that answers, or a dockerd of our own with its data in a folder that is named.

`python -m tests.lab.docker_engine FOLDER COMMAND...` runs a command with an engine, for what is no test.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import docker
from azcp_kit.child import start, stop
from docker.errors import DockerException

from tests.lab.waiting import wait_until

ADDRESS: Final = "DOCKER_HOST"
UNIX: Final = "unix://"
DEFAULT_ADDRESS: Final = f"{UNIX}/var/run/docker.sock"
START_TIMEOUT_S: Final = 60.0
LOG_TAIL_BYTES: Final = 2000
# A container that ignores SIGTERM must not hold dockerd back until it is killed itself.
CONTAINER_STOP_S: Final = 2


def lacking() -> str | None:
    """Why there is no engine and none can be started; None where there is or can be."""
    if answers(None):
        return None
    if shutil.which("dockerd") is None:
        return "no Docker engine answers, and dockerd is not on PATH"
    return None if os.geteuid() == 0 else "no Docker engine answers, and only root can start dockerd"


def answers(address: str | None) -> bool:
    """Whether an engine answers at that address; None stands for DOCKER_HOST or its default."""
    address = address or os.environ.get(ADDRESS) or DEFAULT_ADDRESS
    # docker-py leaves the socket of a connection that is refused to the garbage collector, which warns.
    if address.startswith(UNIX) and not _listens(address.removeprefix(UNIX)):
        return False
    try:
        with closing(docker.from_env(environment=os.environ | {ADDRESS: address})) as client:
            return bool(client.ping())
    except DockerException:
        return False


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


@contextmanager
def engine(folder: Path) -> Iterator[None]:
    """Have an engine at DOCKER_HOST until the block ends; one that we start keeps its images in `folder`.

    Raises:
        RuntimeError: dockerd did not come up.
    """
    if answers(None):
        yield
        return
    before = os.environ.get(ADDRESS)
    with _dockerd(folder) as address:
        os.environ[ADDRESS] = address
        try:
            yield
        finally:
            _restore(before)


def _restore(before: str | None) -> None:
    del os.environ[ADDRESS]
    if before is not None:
        os.environ[ADDRESS] = before


@contextmanager
def _dockerd(folder: Path) -> Iterator[str]:
    folder.mkdir(parents=True, exist_ok=True)
    program = shutil.which("dockerd")
    if program is None:
        raise RuntimeError("dockerd is not on PATH")
    address = f"{UNIX}{folder}/docker.sock"
    places = ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"]
    options = ["--host", address, "--shutdown-timeout", str(CONTAINER_STOP_S)]
    log = folder / "dockerd.log"
    with log.open("wb") as stream:
        process = start([program, *places, *options], os.environ, stdout=stream, stderr=stream)
    try:
        up = "dockerd answers or ends"
        wait_until(lambda: process.poll() is not None or answers(address), START_TIMEOUT_S, up)
        if process.poll() is not None:
            said = log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL_BYTES:]
            raise RuntimeError(f"dockerd ended with {process.returncode}: {said}")
        yield address
    finally:
        stop(process)


def main(argv: list[str]) -> int:
    """Run the command that follows the folder; its status is ours."""
    with engine(Path(argv[0]).resolve()):
        return subprocess.run(argv[1:], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
