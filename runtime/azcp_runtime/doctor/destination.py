"""The destination of a run, tried as a run would use it; nothing of the trial stays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from azcp_runtime.contract import STATE_DIR, PreflightError
from azcp_runtime.contract.units import format_size
from azcp_runtime.disk.probe import check_space, direct_works, free_bytes, prepare
from azcp_runtime.doctor.check import Amount, Check, fail, ok, warn
from azcp_runtime.doctor.place import check_place, read_place
from azcp_runtime.doctor.write_trial import LARGEST_TRIAL, write_trial

_SLOW: Final = 300_000_000
"""Bytes per second: more than the system disks of VMs give, far less than a local NVMe disk."""

_LEFT_FREE: Final = 64 << 20


def missing_folders(dest: Path) -> list[Path]:
    """What preparing the destination will make, innermost first: to be handed to `remove_folders`."""
    return [folder for folder in (dest / STATE_DIR, dest) if not folder.exists()]


def remove_folders(folders: list[Path]) -> None:
    """Take back what was made, unless a run has begun to use it."""
    for folder in folders:
        with suppress(OSError):  # not empty any more, or another node's trial has removed it
            folder.rmdir()


def check_destination(dest: Path, need: int | None, hear: Callable[[], None]) -> Iterator[Check]:
    """Whether a run can write there, how much, and how fast.

    Args:
        dest: absolute; made if it is missing.
        need: bytes that --need asks for.
        hear: called now and then, since a slow disk may take long.
    """
    try:
        prepare(dest)
        yield ok("destination", "can be written")
        yield check_place(read_place(dest))
        yield _space(dest, need)
        direct = direct_works(dest)
    except PreflightError as error:
        yield fail(
            "destination", f"{error.what} ({error.cause})" if error.cause else error.what, error.remedy
        )
        return
    yield _direct(works=direct)
    yield _speed(dest, hear, direct=direct)


def _space(dest: Path, need: int | None) -> Check:
    free = Amount(free_bytes(dest), "bytes")
    if need is None:
        return ok("destination space", "free", free)
    try:
        check_space(dest, need)
    except PreflightError as error:
        return fail("destination space", f"{format_size(need)} are needed, free", error.remedy, free)
    return ok("destination space", f"{format_size(need)} are needed, free", free)


def _direct(*, works: bool) -> Check:
    if works:
        return ok("direct writes", "O_DIRECT works, aligned to 4 KiB")
    return warn(
        "direct writes",
        "no O_DIRECT at 4 KiB here: writes go through the page cache",
        "slower and takes memory, but right; ext4 or xfs on a local disk has it",
    )


def _speed(dest: Path, hear: Callable[[], None], *, direct: bool) -> Check:
    name = "write speed"
    size = min(LARGEST_TRIAL, free_bytes(dest) - _LEFT_FREE)
    if size <= 0:
        return warn(name, "not tried: nearly full", "free space there, or choose another folder")
    try:
        speed = Amount(write_trial(dest / STATE_DIR, size, hear, direct=direct), "bytes/s")
    except OSError as error:
        return fail(
            name,
            f"a write of {format_size(size)} failed: {os.strerror(error.errno or 0)}",
            "look at the disk",
        )
    if speed.value < _SLOW:
        return warn(
            name, "slow for a local disk:", "is it the NVMe disk? Its stripes, or another load on it", speed
        )
    return ok(name, "", speed)
