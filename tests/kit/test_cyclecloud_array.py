"""Several NVMe disks become one array, found again by its name and only when it is whole."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.lab import standin_mdadm
from tests.lab.cyclecloud import failed, install_project, needs_vm, passed, script
from tests.lab.loop_disks import Disk, loop_disk, show_disk
from tests.lab.throwaway import STANDINS, Throwaway

pytestmark = needs_vm

SCRIPT = "execute/scripts/20-nvme.sh"
NVME = "/mnt/nvme"
MEMBER_BYTES = 64 << 20


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[list[Disk]]:
    """Two disks, and what stands for the array of them."""
    with ExitStack() as stack:
        members = [stack.enter_context(loop_disk(tmp_path / f"{at}.img", MEMBER_BYTES)) for at in (0, 1)]
        yield [*members, stack.enter_context(loop_disk(tmp_path / "array.img"))]


@pytest.fixture
def machine(tmp_path: Path, disks: list[Disk]) -> Iterator[Throwaway]:
    """A VM with both disks."""
    with Throwaway(tmp_path / "vm") as vm:
        install_project(vm)
        program = Path(standin_mdadm.__file__).read_text(encoding="utf-8")
        vm.stand_in("mdadm", [program], f"{Path(sys.executable).resolve()} -I")
        os.mknod(vm.path(f"{STANDINS}/array"), stat.S_IFBLK | 0o660, os.stat(disks[2].device).st_rdev)
        show_disk(vm, "nvme0n1", disks[0])
        show_disk(vm, "nvme10n1", disks[1])
        yield vm


def stop(machine: Throwaway) -> None:
    """As after a reboot, before anything assembled the array."""
    machine.said("umount", NVME)
    shutil.rmtree(machine.path("/dev/md"))
    machine.path("/dev/md127").unlink()
    for name in ("nvme0n1", "nvme10n1"):
        shutil.rmtree(machine.path(f"/sys/block/{name}/holders"))


def test_blank_disks_become_one_file_system(machine: Throwaway) -> None:
    output = passed(machine, SCRIPT)
    assert "makes /dev/md/azcp-nvme of /dev/nvme0n1 /dev/nvme10n1" in output
    assert machine.said("findmnt", "-no", "SOURCE", NVME).strip() == "/dev/md/azcp-nvme"
    examined = machine.said("/usr/sbin/mdadm", "--examine", "--export", "/dev/nvme10n1")
    assert "MD_LEVEL=raid0\nMD_DEVICES=2\n" in examined


def test_a_second_run_makes_nothing(disks: list[Disk], machine: Throwaway) -> None:
    passed(machine, SCRIPT)
    before = [disk.digest() for disk in disks[:2]]
    assert "is mounted on /mnt/nvme already" in passed(machine, SCRIPT)
    assert [disk.digest() for disk in disks[:2]] == before


@pytest.mark.parametrize("who", ["the script", "the kernel"])
def test_after_a_reboot_the_array_is_assembled_and_its_data_is_there(who: str, machine: Throwaway) -> None:
    passed(machine, SCRIPT)
    machine.write(f"{NVME}/model", "weights")
    stop(machine)
    if who == "the kernel":
        machine.said("mdadm", "--assemble", "/dev/md/azcp-nvme", "/dev/nvme0n1", "/dev/nvme10n1")
    output = passed(machine, SCRIPT)
    assert "makes" not in output
    assert ("the kernel has assembled /dev/md127" in output) == (who == "the kernel")
    assert machine.path(f"{NVME}/model").read_text() == "weights"


def test_an_array_of_which_a_disk_is_missing_is_not_touched(disks: list[Disk], machine: Throwaway) -> None:
    passed(machine, SCRIPT)
    stop(machine)
    disks[1].put(b"\0" * MEMBER_BYTES)
    before = [disk.digest() for disk in disks]
    assert "not touched: /dev/nvme0n1 (linux_raid_member)" in failed(machine, SCRIPT)
    assert [disk.digest() for disk in disks] == before


def test_an_array_of_somebody_else_is_not_touched(disks: list[Disk], machine: Throwaway) -> None:
    machine.said(
        *("mdadm", "--create", "/dev/md/db", "--level=0", "--raid-devices=2", "--metadata=1.2"),
        *("--name=db", "--homehost=any", "/dev/nvme0n1", "/dev/nvme10n1"),
    )
    before = [disk.digest() for disk in disks]
    output = failed(machine, SCRIPT)
    assert "/dev/nvme0n1 (linux_raid_member) /dev/nvme10n1 (linux_raid_member)" in output
    assert [disk.digest() for disk in disks] == before


def test_one_disk_with_data_keeps_all_from_being_touched(disks: list[Disk], machine: Throwaway) -> None:
    disks[1].put(b"records of a data base", at=1 << 20)
    before = [disk.digest() for disk in disks]
    assert "not touched: /dev/nvme10n1 (data without a signature)" in failed(machine, SCRIPT)
    assert [disk.digest() for disk in disks] == before


def test_an_array_with_a_file_system_of_somebody_else_is_not_touched(
    disks: list[Disk], machine: Throwaway
) -> None:
    passed(machine, SCRIPT)
    stop(machine)
    subprocess.run(["mkfs.ext4", "-q", "-F", disks[2].device], check=True)
    before = [disk.digest() for disk in disks]
    assert "/dev/md/azcp-nvme has no file system of this project's" in failed(machine, SCRIPT)
    assert [disk.digest() for disk in disks] == before


@pytest.mark.parametrize("program", ["mdadm", "mkfs.xfs"])
def test_a_run_that_was_killed_after_the_array_was_made_is_done_again(
    program: str, machine: Throwaway
) -> None:
    if program == "mdadm":
        machine.path(f"{STANDINS}/bin/mdadm").rename(machine.path(f"{STANDINS}/bin/mdadm-in-place"))
        machine.stand_in(
            "mdadm",
            ['mdadm-in-place "$@"; status=$?', '[ "$1" = --create ] || exit $status', "kill -9 $PPID"],
        )
    else:
        machine.stand_in("mkfs.xfs", ["kill -9 $PPID"])
    assert script(machine, SCRIPT).returncode != 0
    assert machine.run("mountpoint", "-q", NVME).returncode != 0
    machine.no_stand_in(program)
    if program == "mdadm":
        machine.path(f"{STANDINS}/bin/mdadm-in-place").rename(machine.path(f"{STANDINS}/bin/mdadm"))
    output = passed(machine, SCRIPT)
    assert "an earlier run was ended on the way" in output
    assert machine.said("findmnt", "-no", "FSTYPE", NVME).strip() == "xfs"


def test_a_run_that_was_killed_between_the_disks_is_done_again(disks: list[Disk], machine: Throwaway) -> None:
    machine.path(f"{STANDINS}/bin/mdadm").rename(machine.path(f"{STANDINS}/bin/mdadm-in-place"))
    machine.stand_in("mdadm", ["kill -9 $PPID"])
    assert script(machine, SCRIPT).returncode != 0
    machine.no_stand_in("mdadm")
    machine.path(f"{STANDINS}/bin/mdadm-in-place").rename(machine.path(f"{STANDINS}/bin/mdadm"))
    one = standin_mdadm.superblock(b"a" * 16, "azcp-nvme", 2, 0, MEMBER_BYTES)
    disks[0].put(one, at=standin_mdadm.SUPERBLOCK_AT)
    output = passed(machine, SCRIPT)
    assert "makes /dev/md/azcp-nvme of /dev/nvme0n1 /dev/nvme10n1" in output
