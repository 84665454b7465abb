"""Whether a disk still takes writes: what the kernel counts for the device below a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_DEVICES: Final = Path("/sys/dev/block")
_WRITES: Final = slice(4, 7)
"""Of a device's stat file: writes completed, writes merged, sectors written (Documentation/block/stat)."""


def writes_completed(folder: Path, devices: Path = _DEVICES) -> tuple[int, ...] | None:
    """Figures that change whenever the device completes a write.

    None where the kernel counts nothing: a network file system, tmpfs, btrfs, an overlay.
    """
    device = os.stat(folder).st_dev
    try:
        counted = (devices / f"{os.major(device)}:{os.minor(device)}" / "stat").read_text(encoding="ascii")
    except OSError:
        return None
    return tuple(int(word) for word in counted.split()[_WRITES])
