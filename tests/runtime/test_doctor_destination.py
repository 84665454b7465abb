"""What azcp-doctor says of a destination, and that it leaves nothing behind there."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from azcp_runtime.contract import STATE_DIR
from azcp_runtime.doctor.check import Check, Status
from azcp_runtime.doctor.destination import check_destination, missing_folders, remove_folders
from azcp_runtime.doctor.place import Place, check_place, mounted_at, read_place
from azcp_runtime.doctor.write_trial import write_trial

from tests.lab.disks import is_root, read_only, small_tmpfs

MIB = 1 << 20
NVME = Place(66306, "xfs", "/dev/nvme0n1", ())
MOUNTS = """\
22 1 0:21 / / rw - overlay overlay rw,lowerdir=/a
23 22 0:22 / /proc rw - proc proc rw
40 22 259:1 /data /mnt/nvme rw,relatime shared:1 - xfs /dev/nvme0n1 rw
41 40 0:50 / /mnt/nvme/with\\040blank rw - nfs4 server:/export rw
42 22 0:51 / /mnt/nvme2 rw - tmpfs tmp\x1b[2Jfs rw
broken line
"""


def checks_of(dest: Path, need: int | None = None) -> dict[str, Check]:
    """By name."""
    return {check.name: check for check in check_destination(dest, need, lambda: None)}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/mnt/nvme/set", ("xfs", "/dev/nvme0n1")),
        ("/mnt/nvme", ("xfs", "/dev/nvme0n1")),
        ("/mnt/nvme/with blank/x", ("nfs4", "server:/export")),
        ("/mnt/nvme3", ("overlay", "overlay")),
        ("/mnt/nvme2", ("tmpfs", "tmp\\x1b[2Jfs")),
    ],
)
def test_the_deepest_mount_above_a_path_holds_it(path: str, found: tuple[str, str]) -> None:
    assert mounted_at(path, MOUNTS) == found


def test_a_disk_of_its_own_is_good() -> None:
    check = check_place(NVME)
    assert (check.status, check.found) == (Status.OK, "xfs on /dev/nvme0n1")


def test_the_disk_of_the_operating_system_is_warned_of() -> None:
    check = check_place(replace(NVME, twins=("/", "/etc/hosts", "/etc/hostname")))
    assert check.status is Status.WARN
    assert check.found.endswith("the disk of the operating system: / too")
    assert "mount the local NVMe disk there" in check.remedy


def test_a_folder_of_the_node_on_which_no_disk_is_mounted_lies_with_the_containers_own_files(
    tmp_path: Path,
) -> None:
    hosts = tmp_path / "hosts"
    hosts.touch()
    place = read_place(tmp_path, MOUNTS, ["/proc", str(hosts), "/nowhere"])
    assert place.twins == (str(hosts),)
    assert check_place(place).status is Status.WARN


@pytest.mark.parametrize("kind", ["nfs4", "lustre", "fuse.blobfuse2"])
def test_a_shared_file_system_is_warned_of(kind: str) -> None:
    assert check_place(replace(NVME, kind=kind)).status is Status.WARN


def test_files_in_memory_are_no_matter_of_the_systems_disk() -> None:
    check = check_place(replace(NVME, kind="tmpfs", twins=("/",)))
    assert check.status is Status.OK
    assert "memory" in check.found


def test_a_good_destination_passes_every_check(tmp_path: Path) -> None:
    checks = checks_of(tmp_path)
    assert {check.status for check in checks.values()} <= {Status.OK, Status.WARN}
    assert checks["destination"].status is Status.OK
    speed, space = checks["write speed"].amount, checks["destination space"].amount
    assert speed is not None
    assert space is not None
    assert speed.value > 0
    assert space.unit == "bytes"


def test_nothing_of_a_trial_stays(tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    made = missing_folders(dest)
    checks_of(dest)
    assert os.listdir(dest / STATE_DIR) == []
    remove_folders(made)
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_before_stays(tmp_path: Path) -> None:
    (tmp_path / STATE_DIR).mkdir()
    made = missing_folders(tmp_path)
    checks_of(tmp_path)
    remove_folders(made)
    assert made == []
    assert os.listdir(tmp_path) == [STATE_DIR]


def test_a_folder_that_a_run_has_begun_to_use_stays(tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    made = missing_folders(dest)
    checks_of(dest)
    (dest / STATE_DIR / "lock").touch()
    remove_folders(made)
    assert (dest / STATE_DIR / "lock").exists()


def test_more_space_than_is_free_fails(tmp_path: Path) -> None:
    check = checks_of(tmp_path, need=1 << 60)["destination space"]
    assert check.status is Status.FAIL
    assert check.remedy == "free space there, or choose another DEST"


def test_a_missing_parent_is_a_disk_that_is_not_mounted(tmp_path: Path) -> None:
    (check,) = checks_of(tmp_path / "nvme" / "set").values()
    assert check.status is Status.FAIL
    assert "is the disk mounted?" in check.found


def test_a_read_only_destination_fails_at_once(tmp_path: Path) -> None:
    with read_only(tmp_path) as dest:
        (check,) = checks_of(dest).values()
    assert (check.name, check.status) == ("destination", Status.FAIL)


def test_a_full_disk_is_not_filled_further(tmp_path: Path) -> None:
    if not is_root():
        pytest.skip("mounting needs root")
    with small_tmpfs(tmp_path, 32 * MIB) as dest:
        check = checks_of(dest)["write speed"]
    assert (check.status, check.found) == (Status.WARN, "not tried: nearly full")


@pytest.mark.parametrize("direct", [True, False])
def test_a_trial_has_no_name_while_it_runs(tmp_path: Path, *, direct: bool) -> None:
    names: list[str] = []
    heard: list[None] = []

    def hear() -> None:
        names.extend(os.listdir(tmp_path))
        heard.append(None)

    assert write_trial(tmp_path, 33 * MIB, hear, direct=direct) > 0
    assert names == []
    assert len(heard) == 3
