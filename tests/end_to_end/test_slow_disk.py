"""A disk that is slow, and one that takes no more writes: the first is waited for, the second is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab.dataset import plain_data_set
from tests.lab.disks import frozen, is_root, small_ext4, stuttering
from tests.lab.expectations import REASON, expect_distributed
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import Job, Outcome, distribute, started
from tests.lab.stored_blobs import StoredBlob, stored
from tests.lab.trees import is_begun, partial_files, wrong_files
from tests.lab.waiting import wait_until

MIB: Final = 1 << 20
RANKS: Final = 3
DISK_BYTES: Final = 160 * MIB
DEADLINE_S: Final = 60.0
DATA: Final = plain_data_set(*[5 * MIB + 1] * 12)
STALL: Final = "--stall-timeout=3"
EMPTY_FILES: Final = 8000
OPTIONS: Final = ("--bcast-chunk=1MiB", "--memory=64MiB")

pytestmark = pytest.mark.skipif(not is_root(), reason="needs root to mount a file system")


@contextmanager
def node_with_a_disk_of_its_own(tmp_path: Path, dest: Path, node: int) -> Iterator[Path]:
    """Where node 1 of some writes to; the others stay on the disk of this machine."""
    with small_ext4(tmp_path, DISK_BYTES) as disk:
        (dest / f"node{node}").symlink_to(disk)
        yield disk


def test_a_disk_that_takes_a_write_only_now_and_then_slows_all_and_stops_nobody(
    tmp_path: Path, dest: Path
) -> None:
    with node_with_a_disk_of_its_own(tmp_path, dest, 1) as disk, FaultAccount(stored(DATA)) as account:
        with stuttering(disk):
            outcome = distribute(account.url(), dest, *OPTIONS, STALL, ranks=RANKS, nodes=RANKS)
        expect_distributed(outcome, dest, DATA, nodes=RANKS)


@pytest.mark.parametrize("node", [0, 1])
def test_a_disk_that_takes_no_more_writes_is_named_with_rank_lane_and_file(
    tmp_path: Path, dest: Path, node: int
) -> None:
    with (
        node_with_a_disk_of_its_own(tmp_path, dest, node) as disk,
        FaultAccount(stored(DATA)) as account,
        started(account.url(), dest, *OPTIONS, STALL, ranks=RANKS, nodes=RANKS) as job,
    ):
        wait_until(lambda: job.ended() or partial_files(disk) != [], DEADLINE_S, "it writes")
        outcome = end_after_a_freeze(job, disk)
        assert wrong_files(disk, DATA.manifest) == []
    assert outcome.code == ExitCode.BROADCAST
    told = re.search(
        rf"nothing moved for 3 s: (rank {node} on \S+) writes b\d+ \(lane of rank \d\)", outcome.stderr
    )
    assert told, outcome.stderr


def test_a_disk_that_stops_answering_in_the_commit_is_named(tmp_path: Path, dest: Path) -> None:
    # Files without bytes get their names after the pass.
    blobs = {f"empty/{number}": StoredBlob(b"") for number in range(EMPTY_FILES)}
    with (
        node_with_a_disk_of_its_own(tmp_path, dest, 1) as disk,
        FaultAccount(blobs) as account,
        started(account.url(), dest, STALL, ranks=RANKS, nodes=RANKS) as job,
    ):
        wait_until(lambda: job.ended() or is_begun(disk / "empty"), DEADLINE_S, "the commit has begun")
        outcome = end_after_a_freeze(job, disk)
    assert outcome.code == ExitCode.DOWNLOAD
    told = re.search(r"rank 1 on \S+: \S+/node1: nothing was written for 3 s", outcome.stderr)
    assert told, outcome.stderr


def end_after_a_freeze(job: Job, disk: Path) -> Outcome:
    """The outcome; a process in the middle of such a write cannot end before the disk answers again."""
    with frozen(disk):
        wait_until(lambda: job.ended() or REASON in job.output(), DEADLINE_S, "the reason is told")
    outcome = job.wait(DEADLINE_S)
    job.wait_until_gone()
    return outcome
