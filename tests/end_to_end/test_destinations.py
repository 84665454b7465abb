"""Destinations that are full, read-only or in the way, and files that are there already."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab.dataset import plain_data_set
from tests.lab.disks import is_root, read_only, small_ext4, small_overlay, small_tmpfs
from tests.lab.expectations import expect_distributed, expect_failure
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import StoredBlob, stored
from tests.lab.trees import assert_same, wrong_files

MakeDisk = Callable[[Path, int], AbstractContextManager[Path]]

MIB: Final = 1 << 20
DATA: Final = StoredBlob(b"data")
UNUSABLE: Final = {ExitCode.DOWNLOAD, ExitCode.PREFLIGHT}


@pytest.mark.skipif(not is_root(), reason="needs root to mount a small file system")
@pytest.mark.parametrize("make_disk", [small_overlay, small_tmpfs])
@pytest.mark.parametrize("options", [[], ["--no-bcast-direct"]], ids=["direct", "buffered"])
def test_every_tail_is_right_on_a_containers_own_files_and_in_memory(
    tmp_path: Path, make_disk: MakeDisk, options: list[str]
) -> None:
    data_set = plain_data_set(0, 1, 511, 512, 513, 4095, 4096, 4097, MIB + 511, 9 * MIB + 4097)
    with make_disk(tmp_path, 96 * MIB) as disk, FaultAccount(stored(data_set)) as account:
        outcome = distribute(account.url(), disk, "--bcast-chunk=1MiB", *options, ranks=2, nodes=2)
        expect_distributed(outcome, disk, data_set, nodes=2)
        distribute(account.url(), disk, "--compare=size", "--verify", ranks=2, nodes=2).expect(ExitCode.DONE)


@pytest.mark.skipif(not is_root(), reason="needs root to mount a small file system")
@pytest.mark.parametrize("make_disk", [small_ext4, small_overlay, small_tmpfs])
@pytest.mark.parametrize("sizes", [[40 * MIB], [MIB] * 40])
def test_a_full_disk_ends_the_run_with_its_reason_and_no_wrong_file(
    tmp_path: Path, make_disk: MakeDisk, sizes: list[int]
) -> None:
    data_set = plain_data_set(*sizes)
    with make_disk(tmp_path, 24 * MIB) as disk, FaultAccount(stored(data_set)) as account:
        outcome = distribute(account.url(), disk, ranks=2)
        expect_failure(outcome, UNUSABLE, "space")
        assert wrong_files(disk, data_set.manifest) == []


@pytest.mark.skipif(not is_root(), reason="needs root to mount a small file system")
def test_a_disk_that_is_full_on_one_node_alone_ends_all(tmp_path: Path, dest: Path) -> None:
    data_set = plain_data_set(*[4 * MIB] * 10)
    with small_ext4(tmp_path, 24 * MIB) as disk, FaultAccount(stored(data_set)) as account:
        (dest / "node1").symlink_to(disk)
        outcome = distribute(account.url(), dest, ranks=3, nodes=3)
        expect_failure(outcome, UNUSABLE, "space")
        for node in range(3):
            assert wrong_files(dest / f"node{node}", data_set.manifest) == []


def test_a_destination_that_cannot_be_written_is_told_before_a_byte_is_read(tmp_path: Path) -> None:
    with read_only(tmp_path) as folder, FaultAccount(stored(plain_data_set(10))) as account:
        for dest in (folder, folder / "below"):
            outcome = distribute(account.url(), dest, ranks=2, nodes=1)
            expect_failure(outcome, UNUSABLE, str(dest))
        assert account.reads() == []


def test_a_destination_without_a_parent_is_taken_for_a_disk_that_is_not_mounted(dest: Path) -> None:
    with FaultAccount(stored(plain_data_set(10))) as account:
        outcome = distribute(account.url(), dest / "missing" / "below", ranks=2)
        assert account.reads() == []
    expect_failure(outcome, UNUSABLE, str(dest / "missing"), "mounted")


@pytest.mark.parametrize("option", ["--no-bcast-direct", "--bcast-writers=7"])
def test_writing_through_the_page_cache_or_by_many_threads_is_right_too(dest: Path, option: str) -> None:
    data_set = plain_data_set(0, 1, 4095, 4097, 9 * MIB + 1)
    with FaultAccount(stored(data_set)) as account:
        outcome = distribute(account.url(), dest, option, "--bcast-chunk=1MiB", ranks=2, nodes=2)
    expect_distributed(outcome, dest, data_set, nodes=2)


def test_a_destination_that_is_a_file_is_told_before_a_byte_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    with FaultAccount(stored(plain_data_set(10))) as account:
        for dest in (tmp_path / "file", tmp_path / "file" / "below"):
            outcome = distribute(account.url(), dest)
            expect_failure(outcome, UNUSABLE)
        assert account.reads() == []
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_a_file_where_a_folder_must_be_is_named_and_left_alone(dest: Path) -> None:
    (dest / "folder").write_bytes(b"mine")
    with FaultAccount({"folder/file": DATA}) as account:
        outcome = distribute(account.url(), dest)
    expect_failure(outcome, UNUSABLE)
    assert "folder" in outcome.stderr
    assert (dest / "folder").read_bytes() == b"mine"


def test_a_folder_where_a_file_must_be_is_named_and_left_alone(dest: Path) -> None:
    (dest / "file" / "inside").mkdir(parents=True)
    with FaultAccount({"file": DATA}) as account:
        outcome = distribute(account.url(), dest)
    expect_failure(outcome, UNUSABLE)
    assert "file" in outcome.stderr
    assert (dest / "file" / "inside").is_dir()


def test_a_file_that_is_there_is_replaced_and_its_readers_keep_the_old_one(dest: Path) -> None:
    data_set = plain_data_set(MIB + 1)
    (dest / "b0").write_bytes(b"old")
    with (dest / "b0").open("rb") as reader, FaultAccount(stored(data_set)) as account:
        distribute(account.url(), dest).expect(ExitCode.DONE)
        assert reader.read() == b"old"
    assert_same(dest, data_set.manifest)


def test_a_link_where_a_file_goes_is_replaced_and_its_target_kept(dest: Path, tmp_path: Path) -> None:
    data_set = plain_data_set(100)
    (tmp_path / "target").write_bytes(b"mine")
    (dest / "b0").symlink_to(tmp_path / "target")
    with FaultAccount(stored(data_set)) as account:
        distribute(account.url(), dest).expect(ExitCode.DONE)
    assert (tmp_path / "target").read_bytes() == b"mine"
    assert_same(dest, data_set.manifest)
