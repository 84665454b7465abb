"""A process that stands still: whoever it is and whenever it stops, the others end and say so."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab import faults
from tests.lab.answers import Answer, Request
from tests.lab.dataset import plain_data_set
from tests.lab.expectations import FAILS_WITHIN_S, REASON, expect_failure, expect_trees, summary_of
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault, listing
from tests.lab.mpi import Job, Outcome, distribute, started
from tests.lab.processes import kill
from tests.lab.stored_blobs import StoredBlob, stored
from tests.lab.trees import is_begun, partial_files, wrong_files
from tests.lab.waiting import wait_until

MIB: Final = 1 << 20
RANKS: Final = 3
DEADLINE_S: Final = 60.0
STALL: Final = "--stall-timeout=3"
# Long enough for every rank to be in the commit while one of them is stopped there.
EMPTY_FILES: Final = 8000
SILENT: Final = "no sign of life from rank {}"


class Gate:
    """Holds back the answers to some requests until it is opened."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._open = threading.Event()

    def fault(self, when: Callable[[Request], bool]) -> Fault:
        """The fault that holds them back."""
        return Fault(self._hold, when=when, times=FOREVER)

    def was_asked(self) -> bool:
        """Whether somebody waits at it."""
        return self._asked.is_set()

    def open(self) -> None:
        """Let all answers out."""
        self._open.set()

    def _hold(self, answer: Answer) -> Answer:
        self._asked.set()
        self._open.wait(DEADLINE_S)
        return answer


def stop(job: Job, rank: int) -> None:
    """SIGSTOP to a rank that runs."""
    kill(job.ranks()[rank], signal.SIGSTOP)


def end_of(job: Job) -> Outcome:
    """How it ended, once nothing is left of it, the stopped process neither."""
    outcome = job.wait(FAILS_WITHIN_S)
    job.wait_until_gone()
    return outcome


def expect_an_end(outcome: Outcome) -> None:
    """With a reason; mpirun wakes the first rank before it ends it, so that it may have its own say too."""
    outcome.expect(ExitCode.BROADCAST)
    assert REASON in outcome.stderr
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("rank", [1, RANKS - 1])
def test_a_rank_that_is_stopped_in_the_pass_is_named(dest: Path, rank: int) -> None:
    data_set = plain_data_set(*[4 * MIB] * 12)
    pace = Fault(faults.slow(MIB), times=FOREVER)
    with (
        FaultAccount(stored(data_set), [pace]) as account,
        started(account.url(), dest, STALL, "--concurrency=2", ranks=RANKS, nodes=RANKS) as job,
    ):
        wait_until(lambda: job.ended() or account.served_bytes() > MIB, DEADLINE_S, "the pass has begun")
        stop(job, rank)
        outcome = end_of(job)
    expect_failure(outcome, ExitCode.BROADCAST, SILENT.format(rank))
    for node in range(RANKS):
        assert wrong_files(dest / f"node{node}", data_set.manifest) == []


def test_when_the_first_rank_is_stopped_in_the_pass_the_others_end(dest: Path) -> None:
    data_set = plain_data_set(*[4 * MIB] * 12)
    pace = Fault(faults.slow(MIB), times=FOREVER)
    with (
        FaultAccount(stored(data_set), [pace]) as account,
        started(account.url(), dest, STALL, "--concurrency=2", ranks=RANKS, nodes=RANKS) as job,
    ):
        wait_until(lambda: job.ended() or account.served_bytes() > MIB, DEADLINE_S, "the pass has begun")
        stop(job, 0)
        outcome = end_of(job)
    expect_failure(outcome, ExitCode.BROADCAST, "waits for the lane of rank 0")
    for node in range(RANKS):
        assert wrong_files(dest / f"node{node}", data_set.manifest) == []


def test_a_rank_that_is_stopped_while_another_lists_is_named(dest: Path) -> None:
    gate = Gate()
    # Too much for an eager message, and rank 3 takes it from rank 2.
    blobs = {f"empty/{number}": StoredBlob(b"") for number in range(EMPTY_FILES)}
    with (
        FaultAccount(blobs, [gate.fault(listing)]) as account,
        started(account.url(), dest, STALL, ranks=4, nodes=4) as job,
    ):
        wait_until(gate.was_asked, DEADLINE_S, "the first rank lists")
        stop(job, 2)
        gate.open()
        outcome = end_of(job)
    expect_failure(outcome, ExitCode.BROADCAST, SILENT.format(2))
    assert "rank 3" not in outcome.stderr


def test_when_the_first_rank_is_stopped_while_it_lists_the_others_end(dest: Path) -> None:
    gate = Gate()
    with (
        FaultAccount({"b": StoredBlob(b"data")}, [gate.fault(listing)]) as account,
        started(account.url(), dest, STALL, "--retry-time=4", ranks=RANKS, nodes=RANKS) as job,
    ):
        wait_until(gate.was_asked, DEADLINE_S, "the first rank lists")
        stop(job, 0)
        outcome = end_of(job)
        gate.open()
    expect_an_end(outcome)
    assert "no sign of life from rank 0" in outcome.stderr


def test_a_rank_that_is_stopped_in_the_commit_is_named(dest: Path) -> None:
    outcome = run_with_a_rank_stopped_in_the_commit(dest, 1)
    expect_failure(outcome, ExitCode.BROADCAST, SILENT.format(1))


def test_when_the_first_rank_is_stopped_in_the_commit_the_others_end(dest: Path) -> None:
    outcome = run_with_a_rank_stopped_in_the_commit(dest, 0)
    expect_an_end(outcome)
    assert "no sign of life from rank 0" in outcome.stderr


def run_with_a_rank_stopped_in_the_commit(dest: Path, rank: int) -> Outcome:
    # Files without bytes get their names after the pass.
    blobs = {f"empty/{number}": StoredBlob(b"") for number in range(EMPTY_FILES)}
    with (
        FaultAccount(blobs) as account,
        started(account.url(), dest, STALL, "--retry-time=4", ranks=RANKS, nodes=RANKS) as job,
    ):
        folder = dest / f"node{rank}" / "empty"
        wait_until(lambda: job.ended() or is_begun(folder), DEADLINE_S, "the commit has begun")
        stop(job, rank)
        assert partial_files(folder)
        return end_of(job)


def test_a_listing_that_takes_longer_than_the_stall_timeout_is_no_stall(dest: Path) -> None:
    data_set = plain_data_set(*[10] * 60)
    # A page of about 30 kB, in about seven seconds.
    pace = Fault(faults.slow(4000), when=listing, times=FOREVER)
    with FaultAccount(stored(data_set), [pace]) as account:
        outcome = distribute(account.url(), dest, STALL, ranks=RANKS, nodes=RANKS)
    assert outcome.seconds > 6
    summary_of(outcome)
    expect_trees(dest, data_set, RANKS)
