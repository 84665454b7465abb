"""The process beside the rank speaks where MPI ends it, or hangs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from azcp_runtime.contract import InterruptedRunError
from azcp_runtime.doctor.guardian import guarded

SPOKEN = 8


class Speech:
    """What the guardian was told to say."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def __call__(self, what: str) -> int:
        """Remember it."""
        self.words.append(what)
        return SPOKEN


def outcome(work: Callable[[Callable[[], None]], int], patience_s: float = 60.0) -> tuple[int, list[str]]:
    """Exit code and what was said."""
    speech = Speech()
    return guarded(work, speech, patience_s), speech.words


def up_and_done(is_up: Callable[[], None]) -> int:
    is_up()
    return 5


def up_and_killed(is_up: Callable[[], None]) -> int:
    is_up()
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def aborted(is_up: Callable[[], None]) -> int:  # noqa: ARG001 - MPI never came up
    return 14


def crashed(is_up: Callable[[], None]) -> int:  # noqa: ARG001 - MPI never came up
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def hanging(is_up: Callable[[], None]) -> int:  # noqa: ARG001 - MPI never came up
    signal.pause()
    return 0


def test_once_mpi_is_up_the_ranks_own_code_counts_and_nothing_is_said() -> None:
    assert outcome(up_and_done) == (5, [])
    assert outcome(up_and_killed) == (-signal.SIGKILL, [])


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (aborted, "MPI did not come up: it ended with code 14"),
        (crashed, "MPI did not come up: the process ended with SIGKILL"),
    ],
)
def test_an_end_before_that_is_told(work: Callable[[Callable[[], None]], int], words: str) -> None:
    assert outcome(work) == (SPOKEN, [words])


def test_a_rank_that_hangs_in_mpi_is_ended_and_told() -> None:
    assert outcome(hanging, 0.2) == (SPOKEN, ["MPI did not come up within 0.2 s"])


def test_a_signal_of_the_launcher_before_mpi_is_up_is_told() -> None:
    def interrupted(number: int, _frame: object) -> None:
        raise InterruptedRunError(f"stopped by {signal.Signals(number).name}")

    def end_guardian(is_up: Callable[[], None]) -> int:
        os.kill(os.getppid(), signal.SIGUSR1)
        return hanging(is_up)

    before = signal.signal(signal.SIGUSR1, interrupted)
    try:
        assert outcome(end_guardian) == (SPOKEN, ["stopped by SIGUSR1 before MPI was up"])
    finally:
        signal.signal(signal.SIGUSR1, before)
