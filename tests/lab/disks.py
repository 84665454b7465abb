"""Destinations that refuse: full, read-only. Mounting needs root."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def is_root() -> bool:
    """Whether this run may mount."""
    return os.geteuid() == 0


@contextmanager
def small_ext4(folder: Path, size_bytes: int) -> Iterator[Path]:
    """An ext4 file system of that size in a loop-mounted image: it takes O_DIRECT, and it is soon full."""
    image = folder / "ext4.img"
    with image.open("wb") as stream:
        stream.truncate(size_bytes)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    with _mounted(folder / "ext4", "-o", "loop", str(image)) as mount:
        (mount / "lost+found").rmdir()
        yield mount


@contextmanager
def small_tmpfs(folder: Path, size_bytes: int) -> Iterator[Path]:
    """A tmpfs of that size."""
    with _mounted(folder / "tmpfs", "-t", "tmpfs", "-o", f"size={size_bytes}", "none") as mount:
        yield mount


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """A folder that nobody can write to: by its mode; for root, whom modes do not stop, by its mount."""
    if is_root():
        with _mounted(folder / "read-only", "-t", "tmpfs", "-o", "ro", "none") as mount:
            yield mount
        return
    path = folder / "read-only"
    path.mkdir(mode=0o555)
    yield path
    path.chmod(0o755)


@contextmanager
def _mounted(point: Path, *arguments: str) -> Iterator[Path]:
    point.mkdir()
    subprocess.run(["mount", *arguments, point], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)
