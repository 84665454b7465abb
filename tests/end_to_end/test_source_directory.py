"""A directory as the source: files that change under the run, and nodes that do not see it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import DownloadError, ExitCode
from azcp_runtime.source.directory import list_directory
from azcp_runtime.source.listing import Entry
from azcp_runtime.source.reader import DirectoryReader

from tests.lab.content import Content
from tests.lab.dataset import plain_data_set
from tests.lab.disks import is_root
from tests.lab.expectations import expect_failure, expect_trees
from tests.lab.mpi import DISTRIBUTE, distribute, started
from tests.lab.stored_blobs import StoredBlob
from tests.lab.trees import final_files, partial_files, wrong_files
from tests.lab.waiting import wait_until

MIB: Final = 1 << 20
DEADLINE_S: Final = 60.0
SIZE: Final = 300_000
LISTED_NS: Final = 1_700_000_000_000_000_000


def rewrite(path: Path) -> None:
    """Other bytes, the same size, another date."""
    path.write_bytes(Content(path.stat().st_size, seed=99).read(0, path.stat().st_size))


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def replace(path: Path) -> None:
    """Another file of the same size under its name, as careful writers do it."""
    other = path.with_name("other")
    other.write_bytes(bytes(path.stat().st_size))
    other.rename(path)


CHANGES: Final = pytest.mark.parametrize("change", [rewrite, truncate, replace])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "shared" / "source"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def entry(source: Path) -> Entry:
    """One listed file, written a while ago."""
    (source / "weights.bin").write_bytes(Content(SIZE, seed=1).read(0, SIZE))
    os.utime(source / "weights.bin", ns=(LISTED_NS, LISTED_NS))
    (listed,) = list_directory(source)
    return listed


@CHANGES
def test_a_file_that_changed_since_it_was_listed_is_an_error_by_name(
    source: Path, entry: Entry, change: Callable[[Path], None]
) -> None:
    change(source / "weights.bin")
    with pytest.raises(DownloadError, match="weights.bin"):
        DirectoryReader(source).read(entry, 0, memoryview(bytearray(SIZE // 4)))


@pytest.mark.parametrize("change", [rewrite, truncate])
def test_a_file_that_changes_during_a_read_is_an_error_by_name(
    source: Path, entry: Entry, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    preadv = os.preadv

    def changed_first(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        change(source / "weights.bin")
        return preadv(descriptor, buffers, offset)

    monkeypatch.setattr(os, "preadv", changed_first)
    with pytest.raises(DownloadError, match="weights.bin"):
        DirectoryReader(source).read(entry, 0, memoryview(bytearray(SIZE // 4)))


def test_a_file_that_does_not_change_is_read_as_it_is(source: Path, entry: Entry) -> None:
    into = bytearray(SIZE)
    DirectoryReader(source).read(entry, 0, memoryview(into))
    assert bytes(into) == StoredBlob(Content(SIZE, seed=1)).read(0, SIZE)


@CHANGES
def test_a_file_that_changes_while_it_is_distributed_ends_the_run_by_name_and_without_a_wrong_file(
    source: Path, dest: Path, change: Callable[[Path], None]
) -> None:
    data_set = plain_data_set(24 * MIB)
    data_set.write_to(source)
    os.utime(source / "b0", ns=(LISTED_NS, LISTED_NS))
    pace = ("--max-bandwidth=8MiB/s", "--block-size=1MiB", "--bcast-chunk=1MiB")
    with started(str(source), dest, *pace, ranks=2, nodes=2) as job:
        wait_until(lambda: job.ended() or bool(partial_files(dest / "node0")), DEADLINE_S, "it is on its way")
        change(source / "b0")
        outcome = job.wait(DEADLINE_S)
    expect_failure(outcome, ExitCode.DOWNLOAD, "b0")
    for node in range(2):
        assert final_files(dest / f"node{node}") == []


@CHANGES
def test_files_that_change_before_their_turn_end_the_run_and_whole_ones_stay(
    source: Path, dest: Path, change: Callable[[Path], None]
) -> None:
    data_set = plain_data_set(*[2 * MIB] * 12)
    data_set.write_to(source)
    for path in source.iterdir():
        os.utime(path, ns=(LISTED_NS, LISTED_NS))
    pace = ("--max-bandwidth=8MiB/s", "--block-size=1MiB", "--bcast-chunk=1MiB")
    with started(str(source), dest, *pace) as job:
        wait_until(lambda: job.ended() or bool(partial_files(dest)), DEADLINE_S, "the first is on its way")
        for path in list(source.iterdir()):
            change(path)
        outcome = job.wait(DEADLINE_S)
    expect_failure(outcome, ExitCode.DOWNLOAD)
    assert any(f"{blob.name} " in outcome.stderr for blob in data_set.blobs)
    assert wrong_files(dest, data_set.manifest) == []


def rank_that_does_not_see(folder: Path, *arguments: str) -> list[str]:
    """One more rank for mpirun, in a mount namespace in which an empty disk covers the folder."""
    hidden = 'mount -t tmpfs none "$0" && exec "$@"'
    return [
        ":",
        "-n",
        "1",
        "unshare",
        "--mount",
        "sh",
        "-c",
        hidden,
        str(folder),
        str(DISTRIBUTE),
        *arguments,
    ]


@pytest.mark.skipif(not is_root(), reason="needs root to hide the source directory from one rank")
def test_with_one_download_rank_only_the_first_needs_the_source_directory(source: Path, dest: Path) -> None:
    data_set = plain_data_set(MIB + 1, 10, 0)
    data_set.write_to(source)
    options = ("--download-ranks=1",)
    other = rank_that_does_not_see(source.parent, str(source), str(dest), *options)
    outcome = distribute(str(source), dest, *options, *other, ranks=1, nodes=2)
    outcome.expect(ExitCode.DONE)
    expect_trees(dest, data_set, nodes=2)


@pytest.mark.skipif(not is_root(), reason="needs root to hide the source directory from one rank")
def test_a_rank_that_is_to_read_a_source_directory_it_does_not_see_ends_the_run(
    source: Path, dest: Path
) -> None:
    plain_data_set(4 * MIB, 4 * MIB).write_to(source)
    other = rank_that_does_not_see(source.parent, str(source), str(dest))
    outcome = distribute(str(source), dest, *other, ranks=1, nodes=2)
    expect_failure(outcome, {ExitCode.LIST, ExitCode.DOWNLOAD, ExitCode.PREFLIGHT}, str(source))
