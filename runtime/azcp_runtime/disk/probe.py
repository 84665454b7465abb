"""What the destination can do, found by trying it; and whether it can be used at all."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from azcp_runtime.contract import STATE_DIR, PreflightError
from azcp_runtime.contract.units import format_size
from azcp_runtime.plan.chunks import ALIGN
from azcp_runtime.source.names import local_path, shown

_SHOWN: Final = 20


def prepare(dest: Path) -> None:
    """Make the destination and the runtime's own folder in it.

    The destination itself is made, its parent is not: a missing parent is most often a disk that
    is not mounted, and the data would fill the disk of the operating system.

    Raises:
        PreflightError: it is missing, no folder, or cannot be written.
    """
    try:
        # Several ranks of one node do this at the same time.
        dest.mkdir(exist_ok=True)
        state = dest / STATE_DIR
        state.mkdir(exist_ok=True)
        if state.is_symlink():
            raise PreflightError(f"{state} is a link", remedy="remove it")
    except FileNotFoundError as error:
        raise PreflightError(
            f"{dest.parent} does not exist",
            cause="is the disk mounted?",
            remedy="mount it, or make the folder",
        ) from error
    except (FileExistsError, NotADirectoryError) as error:
        if error.filename == str(dest / STATE_DIR):
            raise PreflightError(f"{dest / STATE_DIR} is not a folder", remedy="remove it") from error
        raise PreflightError(
            f"{dest}, or a part of its path, is not a folder", remedy="choose another DEST"
        ) from error
    except OSError as error:
        remedy = "mount it writable" if error.errno == errno.EROFS else "the user of this process must own it"
        raise PreflightError(f"cannot write to {dest}: {error.strerror}", remedy=remedy) from error


def lock(dest: Path) -> int:
    """Keep other runs out of a destination as long as this process lives; a descriptor to keep open.

    Raises:
        PreflightError: another run is writing there.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(dest / STATE_DIR / "lock", flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PreflightError(
            f"another run is writing to {dest}", remedy="wait for it or end it, or choose another DEST"
        ) from error
    except OSError as error:
        raise PreflightError(f"cannot lock {dest / STATE_DIR}: {error.strerror}") from error
    return descriptor


def direct_works(dest: Path) -> bool:
    """Whether a direct write at our alignment works there: one is tried, in the runtime's own folder.

    tmpfs, NFS, FUSE and disks with larger sectors differ too much to be told by their names.
    """
    path = dest / STATE_DIR / f"probe-{os.getpid()}"
    page = mmap.mmap(-1, ALIGN)
    try:
        descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        try:
            return os.pwrite(descriptor, page, 0) == ALIGN
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP):
            raise PreflightError(f"cannot write to {dest}: {error.strerror}") from error
        return False
    finally:
        page.close()
        with suppress(OSError):  # what was in the way is told already
            path.unlink(missing_ok=True)


def check_space(dest: Path, needed: int) -> None:
    """Refuse a destination that cannot hold what is missing.

    Raises:
        PreflightError: less is free than needed, in bytes.
    """
    free = free_bytes(dest)
    if needed > free:
        raise PreflightError(
            f"{dest} has {format_size(free)} free, {format_size(needed)} are needed",
            cause="the wrong disk, or data of another run",
            remedy="free space there, or choose another DEST",
        )


def free_bytes(dest: Path) -> int:
    """What this user may still write there."""
    disk = os.statvfs(dest)
    return disk.f_bavail * disk.f_frsize


def check_obstacles(dest: Path, names: Sequence[bytes]) -> None:
    """Refuse a destination with a file or a link in place of a folder, or a folder in place of a file.

    Raises:
        PreflightError: all of them, up to twenty by name.
    """
    obstacles = list(_obstacles(os.fsencode(dest), names))
    if obstacles:
        more = f" and {len(obstacles) - _SHOWN} more" if len(obstacles) > _SHOWN else ""
        raise PreflightError(
            f"in the way in {dest}: " + "; ".join(obstacles[:_SHOWN]) + more,
            remedy="remove them, or choose another DEST",
        )


def allocated_bytes(path: bytes) -> int:
    """Blocks that a file already has, which replacing or resuming it needs no second time."""
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:  # not there, or not reachable: it has none
        return 0


def _obstacles(root: bytes, names: Sequence[bytes]) -> Iterator[str]:
    paths = [local_path(name) for name in names]
    present = {b""}
    # Sorted, a folder comes before those in it: below one that is not there nothing needs a look.
    for folder in sorted({above for path in paths for above in _folders_above(path)}):
        if folder.rpartition(b"/")[0] in present and (mode := _mode(os.path.join(root, folder))):
            # Through a link two names may become one file, or one outside of the destination.
            if stat.S_ISLNK(mode):
                yield f"{shown(folder)} is a link"
                continue
            present.add(folder)
            if not stat.S_ISDIR(mode):
                yield f"{shown(folder)} is not a folder"
    for path in paths:
        if path.rpartition(b"/")[0] in present:
            mode = _mode(os.path.join(root, path))
            if mode and stat.S_ISDIR(mode):
                yield f"{shown(path)} is a folder"


def _folders_above(path: bytes) -> Iterator[bytes]:
    cut = path.find(b"/")
    while cut > 0:
        yield path[:cut]
        cut = path.find(b"/", cut + 1)


def _mode(path: bytes) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:  # not there; whatever else is wrong shows when it is made
        return 0
