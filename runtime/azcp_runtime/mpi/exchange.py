"""What the ranks tell rank 0 of their reads during a run, and what it answers."""

from __future__ import annotations

import time
from types import ModuleType
from typing import TYPE_CHECKING, Final

from azcp_runtime.mpi.ranks import Seat, Talk

if TYPE_CHECKING:
    from mpi4py.MPI import Comm, Request

_REPORT_EVERY_S: Final = 1.0
"""Something is said at least so often; the talk itself decides what is said sooner."""

_LOOK_EVERY_S: Final = 0.02
"""A look for a message costs a call of MPI, and answers are in no hurry."""


class Exchange:
    """One rank's side of it; for the main thread, which calls MPI.

    Args:
        mpi: the module mpi4py.MPI.
        communicator: a duplicate of the world's, for nothing else.
        seat: this rank.

    Attributes:
        talk: what is said and heard; None before and after a pass.
    """

    def __init__(self, mpi: ModuleType, communicator: Comm, seat: Seat) -> None:
        self._mpi = mpi
        self._communicator = communicator
        self._is_first = seat.rank == 0
        self._look_at = 0.0
        self._report_at = 0.0
        self._report: Request = mpi.REQUEST_NULL
        self._answers: dict[int, Request] = {}
        self.talk: Talk | None = None

    def turn(self) -> None:
        """Say what is to be said, take what came; never waits for another rank."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_EVERY_S
        self._take()
        if not self.talk:
            return
        if self._is_first:
            self._answer(self.talk, now)
        else:
            self._tell(self.talk, now)

    def _take(self) -> None:
        """What comes when nobody talks any more is dropped."""
        status = self._mpi.Status()
        while self._communicator.Iprobe(self._mpi.ANY_SOURCE, 0, status):
            source = status.Get_source()
            message = bytearray(status.Get_count(self._mpi.BYTE))
            self._communicator.Recv([message, self._mpi.BYTE], source, 0)
            if not self.talk:
                continue
            if self._is_first:
                self.talk.hear(source, bytes(message))
            else:
                self.talk.obey(bytes(message))

    def _tell(self, talk: Talk, now: float) -> None:
        if not self._report.Test():
            return
        report = talk.report(now, is_due=now >= self._report_at)
        if report is not None:
            self._report = self._communicator.Isend([report, self._mpi.BYTE], 0, 0)
            self._report_at = now + _REPORT_EVERY_S

    def _answer(self, talk: Talk, now: float) -> None:
        """Answer those that have confirmed their last answer; the talk repeats nothing."""
        for rank, answer in talk.answers(now).items():
            if rank in self._answers:
                self._answers[rank].Wait()  # it has arrived, or the talk would not answer that rank
            self._answers[rank] = self._communicator.Isend([answer, self._mpi.BYTE], rank, 0)
