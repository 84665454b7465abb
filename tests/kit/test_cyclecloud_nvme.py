"""The NVMe script of a CycleCloud project makes a file system once, finds it again, and destroys nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.cyclecloud import failed, install_project, needs_vm, passed, script, state
from tests.lab.loop_disks import DISK_BYTES, REMOTE_MODEL, Disk, loop_disk, show_disk
from tests.lab.throwaway import Throwaway

pytestmark = needs_vm

SCRIPT = "execute/scripts/20-nvme.sh"
NVME = "/mnt/nvme"
ENTRY = "LABEL=azcp-nvme /mnt/nvme xfs noatime,nofail,x-systemd.device-timeout=60s 0 2"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Throwaway]:
    """A VM with the project on it."""
    with Throwaway(tmp_path / "vm") as vm:
        install_project(vm)
        vm.write("/etc/fstab", "UUID=0000 / ext4 defaults 0 1\n")
        yield vm


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A blank disk, not part of a machine yet."""
    with loop_disk(tmp_path / "nvme0.img") as one:
        yield one


def mode(machine: Throwaway) -> str:
    return machine.said("stat", "-c", "%a", NVME).strip()


def test_a_blank_disk_gets_a_file_system_that_every_user_can_write_to(disk: Disk, machine: Throwaway) -> None:
    show_disk(machine, "nvme0n1", disk)
    output = passed(machine, SCRIPT)
    assert "makes an xfs on /dev/nvme0n1" in output
    assert machine.said("findmnt", "-no", "SOURCE,FSTYPE", NVME).split() == ["/dev/nvme0n1", "xfs"]
    assert mode(machine) == "1777"
    assert machine.path("/etc/fstab").read_text() == f"UUID=0000 / ext4 defaults 0 1\n{ENTRY}\n"
    assert not machine.path("/var/lib/azcp/nvme.begun").exists()


def test_a_second_run_changes_nothing(disk: Disk, machine: Throwaway) -> None:
    show_disk(machine, "nvme0n1", disk)
    passed(machine, SCRIPT)
    machine.write(f"{NVME}/llama/model", "weights")
    entry = state(machine.path("/etc/fstab"))
    output = passed(machine, SCRIPT)
    assert [line.split(": ", 1)[1] for line in output.splitlines()] == [
        "/dev/nvme0n1 is mounted on /mnt/nvme already"
    ]
    assert machine.path(f"{NVME}/llama/model").read_text() == "weights"
    assert state(machine.path("/etc/fstab")) == entry


def test_after_a_reboot_the_data_is_there_again(disk: Disk, machine: Throwaway) -> None:
    show_disk(machine, "nvme0n1", disk)
    passed(machine, SCRIPT)
    machine.write(f"{NVME}/model", "weights")
    machine.said("umount", NVME)
    assert "makes" not in passed(machine, SCRIPT)
    assert machine.path(f"{NVME}/model").read_text() == "weights"


def test_after_a_stop_the_empty_disk_in_its_place_is_formatted(
    disk: Disk, machine: Throwaway, tmp_path: Path
) -> None:
    with loop_disk(tmp_path / "other.img") as other:
        show_disk(machine, "nvme0n1", disk)
        passed(machine, SCRIPT)
        machine.said("umount", NVME)
        machine.path("/dev/nvme0n1").unlink()
        show_disk(machine, "nvme0n1", other, serial="d4e5f6")
        assert "makes an xfs on /dev/nvme0n1" in passed(machine, SCRIPT)
        assert machine.path("/etc/fstab").read_text().count("azcp-nvme") == 1
        machine.said("umount", NVME)


def ext4(disk: Disk) -> None:
    subprocess.run(["mkfs.ext4", "-q", disk.device], check=True)


def xfs_of_another_name(disk: Disk) -> None:
    subprocess.run(["mkfs.xfs", "-q", "-L", "scratch", disk.device], check=True)


def swap(disk: Disk) -> None:
    subprocess.run(["mkswap", disk.device], check=True, capture_output=True)


def partition_table(disk: Disk) -> None:
    disk.put(b"\0" * 446 + bytes.fromhex("00020200832020000008000000f80b00") + b"\0" * 48 + b"\x55\xaa")


def bytes_at_the_beginning(disk: Disk) -> None:
    disk.put(b"records of a data base", at=3 << 20)


def bytes_at_the_end(disk: Disk) -> None:
    disk.put(b"records of a data base", at=DISK_BYTES - 4096)


@pytest.mark.parametrize(
    "use", [ext4, xfs_of_another_name, swap, partition_table, bytes_at_the_beginning, bytes_at_the_end]
)
def test_a_disk_with_somebodys_data_is_named_and_not_touched(
    use: Callable[[Disk], None], disk: Disk, machine: Throwaway
) -> None:
    use(disk)
    show_disk(machine, "nvme0n1", disk)
    before = disk.digest()
    for _ in range(2):
        output = failed(machine, SCRIPT)
        assert "not touched: /dev/nvme0n1 (" in output
    assert disk.digest() == before
    assert machine.run("mountpoint", "-q", NVME).returncode != 0
    assert machine.path("/etc/fstab").read_text() == "UUID=0000 / ext4 defaults 0 1\n"


def test_data_disks_are_no_local_disks(disk: Disk, machine: Throwaway) -> None:
    show_disk(machine, "nvme0n1", disk, model=REMOTE_MODEL)
    before = disk.digest()
    assert "no local NVMe disk" in failed(machine, SCRIPT)
    assert disk.digest() == before


def test_without_a_disk_nothing_takes_its_place(machine: Throwaway) -> None:
    assert "choose another VM size" in failed(machine, SCRIPT)
    assert not machine.path(NVME).exists()


def test_another_mount_at_the_place_is_refused(disk: Disk, machine: Throwaway) -> None:
    show_disk(machine, "nvme0n1", disk)
    machine.said("mkdir", "-p", NVME)
    machine.said("mount", "-t", "tmpfs", "memory", NVME)
    before = disk.digest()
    assert f"{NVME} is a mount of memory" in failed(machine, SCRIPT)
    assert disk.digest() == before


def test_another_entry_of_fstab_for_the_place_is_refused(disk: Disk, machine: Throwaway) -> None:
    show_disk(machine, "nvme0n1", disk)
    machine.write("/etc/fstab", f"/dev/sdc1 {NVME} ext4 defaults 0 2\n")
    before = disk.digest()
    assert "mounts something else on /mnt/nvme" in failed(machine, SCRIPT)
    assert disk.digest() == before


def kill_while_it_formats(machine: Throwaway) -> None:
    """A first run that ends in mkfs.xfs: the flag that it takes away last is still set."""
    machine.stand_in(
        "mkfs.xfs",
        [
            '/usr/sbin/mkfs.xfs "$@"',
            "for device; do :; done",
            "printf '\\001' | dd of=\"$device\" bs=1 seek=126 conv=notrunc,fsync status=none",
            "kill -9 $PPID",
        ],
    )
    assert script(machine, SCRIPT).returncode != 0
    machine.no_stand_in("mkfs.xfs")


def test_a_run_that_was_killed_while_it_formats_is_done_again(disk: Disk, machine: Throwaway) -> None:
    show_disk(machine, "nvme0n1", disk)
    kill_while_it_formats(machine)
    assert machine.run("mountpoint", "-q", NVME).returncode != 0
    output = passed(machine, SCRIPT)
    assert "an earlier run was ended on the way" in output
    assert mode(machine) == "1777"
    assert not machine.path("/var/lib/azcp/nvme.begun").exists()


def test_a_file_system_that_was_finished_before_the_kill_is_kept(disk: Disk, machine: Throwaway) -> None:
    show_disk(machine, "nvme0n1", disk)
    machine.stand_in("mkfs.xfs", ['/usr/sbin/mkfs.xfs "$@"', "kill -9 $PPID"])
    assert script(machine, SCRIPT).returncode != 0
    machine.no_stand_in("mkfs.xfs")
    made = machine.said("blkid", "-p", "-s", "UUID", "/dev/nvme0n1")
    assert "was finished" in passed(machine, SCRIPT)
    assert machine.said("blkid", "-p", "-s", "UUID", "/dev/nvme0n1") == made


def test_what_somebody_puts_on_the_disk_after_a_killed_run_is_not_touched(
    disk: Disk, machine: Throwaway
) -> None:
    show_disk(machine, "nvme0n1", disk)
    kill_while_it_formats(machine)
    subprocess.run(["wipefs", "--all", "--quiet", disk.device], check=True)
    ext4(disk)
    before = disk.digest()
    assert "(ext4) was written to by somebody else since" in failed(machine, SCRIPT)
    assert disk.digest() == before


def test_the_test_of_the_project_sees_a_missing_mount(disk: Disk, machine: Throwaway) -> None:
    show_disk(machine, "nvme0n1", disk)
    assert "/mnt/nvme is not mounted" in failed(machine, "execute/tests/test-nvme.sh")
    passed(machine, SCRIPT)
    assert "can be written to" in passed(machine, "execute/tests/test-nvme.sh")
