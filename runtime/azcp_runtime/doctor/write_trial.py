"""How fast a disk takes what a run would write: a short trial with a file that has no name."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

LARGEST_TRIAL: Final = 256 << 20
_BLOCK: Final = 4 << 20
_WRITERS: Final = 4
_LONGEST_S: Final = 5.0


def write_trial(
    folder: Path, size: int, hear: Callable[[], None], *, direct: bool, longest_s: float = _LONGEST_S
) -> int:
    """Bytes per second, until they are on the disk.

    Args:
        folder: where the file is made; it is gone in any case afterwards.
        size: at most so many bytes are written, rounded up to 4 MiB.
        hear: called between blocks.
        direct: write with O_DIRECT.
        longest_s: no block is begun later than that.

    Raises:
        OSError: the disk refuses.
    """
    with mmap.mmap(-1, _BLOCK) as block:
        # Some disks compress, and some file systems leave out zeros.
        block.write(os.urandom(_BLOCK))
        descriptor = _unnamed(folder, direct=direct)
        try:
            return _timed(descriptor, block, -(-size // _BLOCK), hear, longest_s)
        finally:
            os.close(descriptor)


def _timed(descriptor: int, block: mmap.mmap, count: int, hear: Callable[[], None], longest_s: float) -> int:
    began, written = time.monotonic(), 0
    with ThreadPoolExecutor(_WRITERS) as pool:
        for start in range(0, count, _WRITERS):
            offsets = [index * _BLOCK for index in range(start, min(count, start + _WRITERS))]
            written += sum(pool.map(lambda offset: os.pwrite(descriptor, block, offset), offsets))
            hear()
            if time.monotonic() - began > longest_s:
                break
    os.fdatasync(descriptor)
    return round(written / max(1e-9, time.monotonic() - began))


def _unnamed(folder: Path, *, direct: bool) -> int:
    """A file that the kernel removes with its descriptor, however this process ends."""
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_DIRECT if direct else 0)
    try:
        return os.open(folder, flags | os.O_TMPFILE, 0o600)
    except OSError:  # overlay and network file systems may not have it
        path = folder / f"trial-{os.getpid()}"
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        path.unlink()
        return descriptor
