"""SIGKILL at any moment: no wrong file under a final name, no process left, and the next run completes."""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING, Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab import faults
from tests.lab.dataset import DataSet, hard_data_set
from tests.lab.expectations import expect_failure, expect_trees
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault
from tests.lab.mpi import Job, distribute, started
from tests.lab.stored_blobs import stored
from tests.lab.trees import final_files, wrong_files
from tests.lab.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS: Final = int(os.environ.get("AZCP_KILL_ROUNDS", "4"))
RANKS: Final = 4
CHUNK: Final = 1 << 20
DEADLINE_S: Final = 60.0
# Slow enough for a kill to land anywhere in the pass.
PACE_BYTES_PER_S: Final = 8 << 20


@pytest.fixture(scope="module")
def data_set() -> DataSet:
    """Many small files and a few large ones."""
    return hard_data_set(300, chunk_bytes=CHUNK)


def kill_at_a_random_moment(
    job: Job, account: FaultAccount, dest: Path, total_bytes: int, dice: random.Random
) -> None:
    """Wait until so much has been served, or so many files have their names, then kill one process."""
    share = dice.random()
    if dice.random() < 0.5:
        start = account.served_bytes()
        wait_until(
            lambda: job.ended() or account.served_bytes() - start >= share * total_bytes,
            DEADLINE_S,
            "bytes served",
        )
    else:
        wait_until(lambda: job.ended() or len(final_files(dest)) >= share * 300, DEADLINE_S, "files finished")
    if dice.random() < 0.3:
        job.kill_launcher()
    else:
        job.kill_rank(dice.randrange(RANKS))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_killed_run_leaves_nothing_wrong_and_the_next_one_completes(
    dest: Path, data_set: DataSet, seed: int
) -> None:
    dice = random.Random(seed)
    nodes = dice.choice([RANKS, RANKS // 2])
    options = ("--bcast-chunk=1MiB", "--compare=size", "--concurrency=4")
    pace = Fault(faults.slow(PACE_BYTES_PER_S), times=FOREVER)
    with FaultAccount(stored(data_set), [pace]) as account:
        for _ in range(dice.choice([1, 1, 2])):
            with started(account.url(), dest, *options, ranks=RANKS, nodes=nodes) as job:
                kill_at_a_random_moment(job, account, dest / "node0", data_set.total_bytes, dice)
                job.wait(DEADLINE_S)
                job.wait_until_gone(DEADLINE_S)
            for node in range(nodes):
                assert wrong_files(dest / f"node{node}", data_set.manifest) == []
        distribute(account.url(), dest, *options, ranks=RANKS, nodes=nodes).expect(ExitCode.DONE)
    expect_trees(dest, data_set, nodes)


def test_a_rank_that_is_killed_ends_the_job_by_its_number_and_signal(dest: Path, data_set: DataSet) -> None:
    pace = Fault(faults.slow(CHUNK), times=FOREVER)
    with (
        FaultAccount(stored(data_set), [pace]) as account,
        started(account.url(), dest, "--concurrency=1", ranks=RANKS, nodes=RANKS) as job,
    ):
        wait_until(lambda: job.ended() or account.served_bytes() > CHUNK, DEADLINE_S, "the pass has begun")
        job.kill_rank(2)
        outcome = job.wait(DEADLINE_S)
        job.wait_until_gone(DEADLINE_S)
    assert outcome.code == 128 + signal.SIGKILL
    assert "process rank 2 with PID" in outcome.stderr


@pytest.mark.parametrize("ranks", [None, 2])
def test_a_run_that_is_asked_to_end_says_that_it_can_go_on(
    dest: Path, data_set: DataSet, ranks: int | None
) -> None:
    pace = Fault(faults.slow(CHUNK), times=FOREVER)
    with (
        FaultAccount(stored(data_set), [pace]) as account,
        started(account.url(), dest, "--concurrency=1", ranks=ranks, nodes=ranks) as job,
    ):
        wait_until(lambda: job.ended() or account.served_bytes() > CHUNK, DEADLINE_S, "the pass has begun")
        job.terminate()
        outcome = job.wait(DEADLINE_S)
        job.wait_until_gone(DEADLINE_S)
    expect_failure(outcome, ExitCode.RESUMABLE, "SIGTERM")
