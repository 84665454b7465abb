"""A disk that answers no more: found by what the kernel counts, or by reads that never end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import pytest
from azcp_runtime.contract import VerifyError, WriteError
from azcp_runtime.disk.activity import writes_completed
from azcp_runtime.disk.commit import Committer
from azcp_runtime.engine import settle
from azcp_runtime.engine.settle import DiskWatch
from azcp_runtime.mpi.ranks import Seat
from azcp_runtime.mpi.solo import Solo
from azcp_runtime.source.listing import Entry, make_listing
from azcp_runtime.verify import verify

STAT: Final = "8 0 64 4 77 3 4096 9 0 0 0 0 0 0 0 0 0\n"


def test_the_writes_of_the_device_below_a_folder_are_counted(tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    stat = tmp_path / f"{os.major(device)}:{os.minor(device)}" / "stat"
    stat.parent.mkdir()
    stat.write_text(STAT)
    assert writes_completed(tmp_path, tmp_path) == (77, 3, 4096)


def test_where_the_kernel_counts_nothing_nothing_is_said(tmp_path: Path) -> None:
    assert writes_completed(tmp_path, tmp_path / "no-devices") is None


@dataclass
class Commits:
    """A committer as far as it is looked at."""

    committed: int = 0


def look_at(watch: DiskWatch, seconds: list[float]) -> None:
    """One look at each of these times."""
    for second in seconds:
        watch.look(second)


@pytest.fixture
def commits() -> Commits:
    return Commits()


@pytest.fixture
def watch(tmp_path: Path, commits: Commits, monkeypatch: pytest.MonkeyPatch) -> DiskWatch:
    """Of a disk that completes nothing, with a time-out of 3 s; its clock begins at 100."""
    monkeypatch.setattr(settle, "writes_completed", lambda _: (1, 1, 1))
    with monkeypatch.context() as clock:
        clock.setattr(time, "monotonic", lambda: 100.0)
        return DiskWatch(tmp_path, cast("Committer", commits), 3.0)


# The clock stands at 100 when the watch begins.
def every(step_s: float, until_s: float) -> list[float]:
    return [100.0 + step_s * (number + 1) for number in range(int(until_s / step_s))]


def test_a_disk_that_completes_nothing_is_told_after_the_timeout(watch: DiskWatch) -> None:
    look_at(watch, every(0.6, 3.0))
    with pytest.raises(WriteError, match="nothing was written for 3 s"):
        look_at(watch, [103.6, 104.2])


def test_files_that_get_their_names_are_a_sign_of_life(watch: DiskWatch, commits: Commits) -> None:
    for second in every(0.6, 30.0):
        commits.committed += 1
        watch.look(second)


def test_a_disk_that_nobody_counts_is_never_given_up(
    watch: DiskWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settle, "writes_completed", lambda _: None)
    look_at(watch, every(0.6, 30.0))


def test_the_time_in_which_the_process_itself_was_stopped_does_not_count(watch: DiskWatch) -> None:
    look_at(watch, [100.6, 150.0, 150.6, 151.2])


@contextmanager
def pipe_without_writer(path: Path) -> Iterator[None]:
    """What a read of which never ends, until the block does."""
    os.mkfifo(path)
    yield
    os.close(os.open(path, os.O_WRONLY))


def test_a_file_whose_read_never_ends_is_named_by_verify(tmp_path: Path) -> None:
    listing = make_listing([Entry(b"good", 4), Entry(b"stuck", 4)])
    (tmp_path / "good").write_bytes(b"good")
    with pipe_without_writer(tmp_path / "stuck"), pytest.raises(VerifyError, match="from stuck"):
        verify(Solo({}), tmp_path, listing, 1.5)


def test_ranks_are_named_by_their_number_in_the_world() -> None:
    seat = Seat(0, 4, 0, 2, 0, 2, ("n0", "n1"), (0, 1, 0, 1))
    assert [seat.at(index) for index in range(4)] == [0, 2, 1, 3]
