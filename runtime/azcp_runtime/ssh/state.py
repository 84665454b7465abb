"""The one folder that must be writable, and what a node remembers there of the container it runs in."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.contract.image import ENV_STATE_DIR, SSH_PORT

CONTAINER: Final = "container.json"
"""What azcp-sshd was started with: the container's own environment and working directory."""

LAUNCHER: Final = "launcher.json"
"""The same of azcp-launch, for a node that has no azcp-sshd."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the process that the container was started for has found.

    Args:
        env: its environment, undecodable bytes as surrogates.
        cwd: its working directory, the image's WORKDIR.
        port: of the node's ssh server.
    """

    env: Mapping[str, str]
    cwd: str
    port: int = SSH_PORT


def state_dir(env: Mapping[str, str]) -> Path:
    """A folder of mode 0700 that belongs to us.

    Raises:
        PreflightError: none can be made; each candidate is named with its reason.
    """
    refusals = []
    for candidate in _candidates(env.get(ENV_STATE_DIR, "")):
        try:
            return _own(candidate)
        except OSError as error:
            refusals.append(f"{candidate}: {error.strerror}")
    raise PreflightError(
        f"no folder is writable for uid {os.geteuid()} ({'; '.join(refusals)})",
        remedy=f"mount an emptyDir or a tmpfs and name it in {ENV_STATE_DIR}",
    )


def remember(state: Path, name: str, found: Surroundings) -> None:
    """Write what was found, for our own eyes: it may hold keys."""
    write_private(state / name, json.dumps(asdict(found)).encode("ascii"))


def recall(state: Path, *names: str) -> Surroundings | None:
    """What was remembered under the first of the names that is there."""
    for name in names:
        try:
            return Surroundings(**json.loads((state / name).read_bytes()))
        except FileNotFoundError:
            continue
        except (ValueError, TypeError) as error:
            raise PreflightError(
                f"{state / name} is damaged: {error}", remedy="start azcp-sshd on that node again"
            ) from error
    return None


def here(port: int = SSH_PORT) -> Surroundings:
    """What this process finds now."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:  # a working directory that was removed, or that a mount hides
        cwd = "/"
    return Surroundings(_own_environment(), cwd, port)


def _own_environment() -> dict[str, str]:
    """What this process was started with: Python has added LC_CTYPE to os.environ where no locale was set."""
    block = Path("/proc/self/environ").read_bytes()
    pairs = (entry.partition(b"=") for entry in block.split(b"\0") if b"=" in entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def write_private(path: Path, content: bytes) -> None:
    """Replace a file at once by one of mode 0600."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
    os.replace(partial, path)


def _candidates(named: str) -> Iterator[Path]:
    name = f"azcp-{os.geteuid()}"
    if named:
        # A mount often belongs to root and is open to all: then a folder of our own below it.
        yield from (Path(named), Path(named, name))
        return
    yield Path("/run/azcp")
    yield Path("/run/azcp", name)
    yield Path("/tmp", name)  # noqa: S108 - checked to be our own and no link
    yield Path("/dev/shm", name)  # noqa: S108


def _own(folder: Path) -> Path:
    try:
        folder.mkdir(0o700)
    except FileExistsError:
        pass
    except OSError:
        # On a read-only root mkdir says so even of a mount point that is there and writable.
        if not folder.is_dir():
            raise
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "it belongs to somebody else, or is a link")
    if stat.S_IMODE(found.st_mode) & 0o077:
        # A mount that others use as well, or /tmp itself: its mode is not ours to change.
        raise OSError(errno.EPERM, "others may enter it")
    probe = folder / f".probe.{os.getpid()}"
    probe.touch(0o600)
    probe.unlink()
    return folder
