"""Which machine has the data: its name in a file, for a workflow that sends the next pod to the same one."""

from __future__ import annotations

import os
from pathlib import Path

from azcp_runtime.contract import PreflightError, WriteError


def check_node_file(path: Path) -> None:
    """Refuse a place that cannot be written to, before the data is fetched.

    Raises:
        PreflightError: why.
    """
    if not path.parent.is_dir():
        raise PreflightError(
            f"--node-file {path}: there is no folder {path.parent}", remedy="mount one there"
        )
    if path.is_dir():
        raise PreflightError(f"--node-file {path} is a folder", remedy="name a file in it")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PreflightError(
            f"--node-file {path}: {path.parent} is not writable for uid {os.geteuid()}",
            remedy="mount an emptyDir there",
        )


def write_node_file(path: Path, name: str) -> None:
    """Replace the file at once by one that everybody may read: the workflow's own container is another user.

    Raises:
        WriteError: it cannot be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{name}\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise WriteError(f"--node-file {path} cannot be written: {error.strerror}") from error
