"""A program in mdadm's place where the kernel has no md: takes its command line, refuses what it refuses.

The superblocks are real ones (version 1.2), so that blkid, wipefs and the real `mdadm --examine` read them.
What stands for the array is a block device of its own, /opt/standins/array; its data is not striped.
"""

from __future__ import annotations

import argparse
import os
import stat
import struct
import sys
import uuid
from pathlib import Path

REAL = "/usr/sbin/mdadm"
ARRAY = Path("/opt/standins/array")
MAGIC = 0xA92B4EFC
SUPERBLOCK_AT = 4096
HEADER_BYTES = 256
HEADER = struct.Struct("<IIII16s32sQiIQIIIIQIIIIQQQQII16sBBHIQQQII32x")
MD = "md127"


def superblock(array: bytes, name: str, disks: int, number: int, size_bytes: int) -> bytes:
    """What mdadm writes on one disk of a raid0."""
    data_offset = 2048
    sectors = size_bytes // 512 - data_offset
    roles = struct.pack(f"<{disks}H", *range(disks))
    device_uuid = uuid.uuid4().bytes

    def packed(checksum: int) -> bytes:
        head = HEADER.pack(
            MAGIC, 1, 0, 0, array, f"any:{name}".encode(), 0, 0, 0, 0, 1024, disks,
            0, 0, 0, 0, 0, 0, 0, data_offset, sectors, SUPERBLOCK_AT // 512, 0, number, 0,
            device_uuid, 0, 0, 0, 0, 0, 0, 0, checksum, disks,
        )  # fmt: skip
        return head + roles

    blank = packed(0)
    words = struct.unpack(f"<{len(blank) // 4}I", blank[: len(blank) // 4 * 4])
    total = sum(words) + (int.from_bytes(blank[-2:], "little") if len(blank) % 4 else 0)
    checksum = ((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF
    return packed(checksum)


def read(disk: str) -> tuple[bytes, int] | None:
    """The array's UUID and its number of disks; None for a disk without a superblock."""
    with Path(disk).open("rb") as stream:
        stream.seek(SUPERBLOCK_AT)
        fields = HEADER.unpack(stream.read(HEADER_BYTES))
    return (fields[4], fields[11]) if fields[0] == MAGIC else None


def holders(disk: str) -> Path:
    """Where the kernel shows what holds it."""
    return Path("/sys/block", Path(disk).name, "holders")


def start(name: str, disks: list[str]) -> int:
    """Show the array, as the kernel and udev do."""
    number = os.stat(ARRAY).st_rdev
    for node in (Path(name), Path("/dev", MD)):
        node.parent.mkdir(parents=True, exist_ok=True)
        if not node.exists():
            os.mknod(node, stat.S_IFBLK | 0o660, number)
    for disk in disks:
        (holders(disk) / MD).mkdir(parents=True, exist_ok=True)
    print(f"mdadm: array {name} started.", file=sys.stderr)
    return 0


def refuse(what: str) -> int:
    """As mdadm says it."""
    print(f"mdadm: {what}", file=sys.stderr)
    return 1


def busy(disks: list[str]) -> str:
    """One that is part of a running array."""
    return next((disk for disk in disks if holders(disk).is_dir() and any(holders(disk).iterdir())), "")


def create(options: argparse.Namespace) -> int:
    """Write the superblocks and start."""
    if options.level != "0" or options.raid_devices != len(options.disks):
        return refuse(f"You have listed {len(options.disks)} devices, {options.raid_devices} are asked for")
    if disk := busy(options.disks):
        return refuse(f"{disk} is busy - skipping")
    if not options.run and any(os.system(f"wipefs -n {disk} | grep -q .") == 0 for disk in options.disks):  # noqa: S605
        return refuse("create aborted.")  # it asks, and reads the end of its input
    array = uuid.uuid4().bytes
    for number, disk in enumerate(options.disks):
        with Path(disk).open("r+b") as stream:
            size_bytes = stream.seek(0, os.SEEK_END)
            stream.seek(SUPERBLOCK_AT)
            stream.write(superblock(array, options.name, len(options.disks), number, size_bytes))
    return start(options.array, options.disks)


def assemble(options: argparse.Namespace) -> int:
    """Start what is whole."""
    found = [read(disk) for disk in options.disks]
    if None in found:
        return refuse("no RAID superblock on one of the disks")
    if len(set(found)) != 1:
        return refuse("the disks are not similar")
    if found[0] is not None and found[0][1] != len(found):
        return refuse(f"{options.array} assembled from {len(found)} drives - not enough to start the array.")
    if disk := busy(options.disks):
        return refuse(f"{disk} is busy - skipping")
    return start(options.array, options.disks)


def main() -> int:
    """Run."""
    mode, *rest = sys.argv[1:]
    if mode == "--examine":
        os.execv(REAL, [REAL, mode, *rest])  # noqa: S606
    parser = argparse.ArgumentParser(prog="mdadm")
    parser.add_argument("array")
    parser.add_argument("disks", nargs="+")
    if mode == "--assemble":
        return assemble(parser.parse_args(rest))
    parser.add_argument("--level", required=True)
    parser.add_argument("--raid-devices", type=int, required=True)
    parser.add_argument("--metadata", choices=["1.2"], required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--homehost", choices=["any"], required=True)
    parser.add_argument("--run", action="store_true")
    return (
        create(parser.parse_intermixed_args(rest)) if mode == "--create" else refuse(f"{mode} is not known")
    )


if __name__ == "__main__":
    sys.exit(main())
