"""Destinations that refuse: full, read-only. Mounting needs root."""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FROZEN_S: Final = 0.3
THAWED_S: Final = 0.1


def is_root() -> bool:
    """Whether this run may mount."""
    return os.geteuid() == 0


@contextmanager
def small_ext4(folder: Path, size_bytes: int, sector_bytes: int = 512) -> Iterator[Path]:
    """An ext4 file system of that size on a loop device: it takes O_DIRECT, and it is soon full."""
    image = folder / "ext4.img"
    with image.open("wb") as stream:
        stream.truncate(size_bytes)
    sectors = ["--sector-size", str(sector_bytes)]
    attached = subprocess.run(
        ["losetup", "--find", "--show", *sectors, image], check=True, capture_output=True, text=True
    )
    device = attached.stdout.strip()
    try:
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", device], check=True)
        with _mounted(folder / "ext4", device) as mount:
            (mount / "lost+found").rmdir()
            yield mount
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@contextmanager
def frozen(mount: Path) -> Iterator[None]:
    """Whoever writes to that file system waits, as on a disk that answers no more, until the block ends."""
    _freeze(mount)
    try:
        yield
    finally:
        _thaw(mount)


@contextmanager
def stuttering(mount: Path) -> Iterator[None]:
    """A file system that most of the time takes no write."""
    ended = threading.Event()

    def stutter() -> None:
        while not ended.wait(THAWED_S):
            _freeze(mount)
            ended.wait(FROZEN_S)
            _thaw(mount)

    thread = threading.Thread(target=stutter)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def small_tmpfs(folder: Path, size_bytes: int) -> Iterator[Path]:
    """A tmpfs of that size."""
    with _mounted(folder / "tmpfs", "-t", "tmpfs", "-o", f"size={size_bytes}", "none") as mount:
        yield mount


@contextmanager
def small_overlay(folder: Path, size_bytes: int) -> Iterator[Path]:
    """A container's own files: an overlay whose upper layer is an ext4 of that size."""
    lower = folder / "lower"
    lower.mkdir()
    with small_ext4(folder, size_bytes) as disk:
        for name in ("upper", "work"):
            (disk / name).mkdir()
        layers = f"lowerdir={lower},upperdir={disk}/upper,workdir={disk}/work"
        with _mounted(folder / "overlay", "-t", "overlay", "-o", layers, "none") as mount:
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


def _freeze(mount: Path) -> None:
    subprocess.run(["fsfreeze", "--freeze", mount], check=True)


def _thaw(mount: Path) -> None:
    subprocess.run(["fsfreeze", "--unfreeze", mount], check=True)
