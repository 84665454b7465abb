"""Files as disks: loop devices, and what a machine shows of them as its local NVMe disks."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.lab.throwaway import Throwaway

LOCAL_MODEL: Final = "Microsoft NVMe Direct Disk v2           "
REMOTE_MODEL: Final = "MSFT NVMe Accelerator v1.0              "
DISK_BYTES: Final = 400 << 20
"""mkfs.xfs makes nothing below 300 MB."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A file and its loop device."""

    image: Path
    device: str

    def digest(self) -> str:
        """Of every byte."""
        with self.image.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def put(self, content: bytes, at: int = 0) -> None:
        """Write to the device, as whoever owns it would."""
        with Path(self.device).open("r+b") as stream:
            stream.seek(at)
            stream.write(content)


@contextmanager
def loop_disk(image: Path, size_bytes: int = DISK_BYTES) -> Iterator[Disk]:
    """A blank disk."""
    with image.open("wb") as stream:
        stream.truncate(size_bytes)
    attached = subprocess.run(
        ["losetup", "--find", "--show", image], check=True, capture_output=True, text=True
    )
    disk = Disk(image, attached.stdout.strip())
    try:
        yield disk
    finally:
        subprocess.run(["losetup", "--detach", disk.device], check=True)
        image.unlink()


def show_disk(machine: Throwaway, name: str, disk: Disk, model: str = LOCAL_MODEL, serial: str = "") -> None:
    """Let the machine have it as /dev/NAME, as the kernel would show it."""
    machine.block_device(name, disk.device)
    machine.write(f"/sys/block/{name}/device/model", f"{model}\n")
    machine.write(f"/sys/block/{name}/device/serial", f"{serial or f'a1b2c3-{name}'}\n")
