"""What the ranks tell rank 0 beside the data: that they live, how much has moved, and why they failed.

What they say of their reads goes with it, and rank 0's answers come back.
"""

from __future__ import annotations

import struct
import time
from types import ModuleType
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import BroadcastError
from azcp_runtime.mpi.backoff import LONGEST_NAP_S
from azcp_runtime.mpi.ranks import PeerFailedError, Seat, Talk

if TYPE_CHECKING:
    from mpi4py.MPI import Comm, Request

_BEAT_EVERY_S: Final = 1.0
_SILENT_AFTER_S: Final = 3.0
_BEAT: Final = struct.Struct("<Q")
_BEAT_TAG: Final = 0
"""Of a sign of life; the tag of a failure is its exit code, which is never 0."""

_LISTEN_EVERY_S: Final = 0.02
"""A look for a message costs a call of MPI, and answers are in no hurry."""

_GRACE_S: Final = 3.0
"""How long a failed rank waits for rank 0 to print its reason and end the run."""

_TURN_S: Final = 4.0
_MOST_TURNS: Final = 6
_NAMED: Final = 4


class Pulse:
    """One rank's side of it.

    Args:
        mpi: the module mpi4py.MPI.
        communicator: a duplicate of the world's, for nothing else.
        seat: this rank.
        patience_s: after so many seconds without a sign of life a rank is given up.
    """

    def __init__(self, mpi: ModuleType, communicator: Comm, seat: Seat, patience_s: float) -> None:
        self._mpi = mpi
        self._communicator = communicator
        self._seat = seat
        self._patience_s = patience_s
        self._heard = {rank: (time.monotonic(), 0) for rank in range(1, seat.size)}
        self._beat: Request = mpi.REQUEST_NULL
        self._beat_at = 0.0
        self._look_at = 0.0
        self._listened_at = time.monotonic()
        self._deaf_until = 0.0
        self._moved = 0
        self._listen_at = 0.0
        self._answers: dict[int, Request] = {}
        self.talk: Talk | None = None

    def hear(self) -> None:
        """Give a sign of life when it is time; on rank 0, take those of the others and answer.

        Raises:
            PeerFailedError: on rank 0, when another rank has failed.
        """
        if self._seat.rank != 0:
            self._give_sign()
            self._take_answers()
            return
        self._forgive_own_pause()
        status = self._mpi.Status()
        while self._communicator.Iprobe(self._mpi.ANY_SOURCE, self._mpi.ANY_TAG, status):
            source, tag = status.Get_source(), status.Get_tag()
            message = bytearray(status.Get_count(self._mpi.BYTE))
            self._communicator.Recv([message, self._mpi.BYTE], source, tag)
            if tag == _BEAT_TAG:
                self._heard[source] = (time.monotonic(), _BEAT.unpack_from(message)[0])
                if self.talk and len(message) > _BEAT.size:
                    self.talk.hear(source, bytes(message[_BEAT.size :]))
            elif time.monotonic() >= self._deaf_until:
                raise PeerFailedError(message.decode("utf-8", "replace"), tag)
        self._answer()

    def _forgive_own_pause(self) -> None:
        """What was not heard while rank 0 itself did not listen is nobody's silence.

        After a long pause it leaves failures to the ranks that sent them: they speak for themselves
        when rank 0 has not done so in time, and one of them may have done it already.
        """
        now = time.monotonic()
        pause = now - self._listened_at
        self._listened_at = now
        if pause > _SILENT_AFTER_S / 2:
            self._heard = {rank: (heard + pause, moved) for rank, (heard, moved) in self._heard.items()}
        if pause > _GRACE_S:
            self._deaf_until = now + _GRACE_S + _MOST_TURNS * _TURN_S

    def tell_failure(self, line: str, code: int) -> None:
        """Let rank 0 print the line and end the run; returns when rank 0 has not done so in time."""
        message = self._communicator.Isend([line.encode(), self._mpi.BYTE], dest=0, tag=code)
        # One after the other, so that where rank 0 is stopped only one of them has to speak.
        turn = min(self._seat.rank, _MOST_TURNS) - 1
        deadline = time.monotonic() + _GRACE_S + turn * _TURN_S
        while time.monotonic() < deadline:
            message.Test()
            time.sleep(LONGEST_NAP_S)

    def moved_elsewhere(self, here: int) -> int:
        """What the other ranks said they have moved; they are told what moved here."""
        self._moved = here
        return sum(moved for _, moved in self._heard.values())

    def silent(self, seconds: float = _SILENT_AFTER_S) -> list[int]:
        """On rank 0: the ranks that have not been heard of for so long."""
        since = time.monotonic() - seconds
        return [rank for rank, (heard, _) in self._heard.items() if self._seat.rank == 0 and heard < since]

    def give_up_lost(self) -> None:
        """On rank 0, now and then: end the run if a rank has been silent beyond patience.

        Raises:
            BroadcastError: it names them.
        """
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _BEAT_EVERY_S
        if lost := self.silent(self._patience_s):
            names = ", ".join(self._seat.named(rank) for rank in lost[:_NAMED])
            raise BroadcastError(
                f"no sign of life from {names} for {self._patience_s:.0f} s",
                cause="a stopped process or a cut link",
                remedy="look at that node; --stall-timeout sets the limit",
            )

    def _give_sign(self) -> None:
        now = time.monotonic()
        if now < self._listen_at or not self._beat.Test():
            return
        is_due = now >= self._beat_at
        report = self.talk.report(now, is_due=is_due) if self.talk else None
        if not is_due and report is None:
            return
        sign = [_BEAT.pack(self._moved) + (report or b""), self._mpi.BYTE]
        self._beat = self._communicator.Isend(sign, dest=0, tag=_BEAT_TAG)
        self._beat_at = now + _BEAT_EVERY_S

    def _take_answers(self) -> None:
        now = time.monotonic()
        if now < self._listen_at:
            return
        self._listen_at = now + _LISTEN_EVERY_S
        status = self._mpi.Status()
        while self._communicator.Iprobe(0, _BEAT_TAG, status):
            message = bytearray(status.Get_count(self._mpi.BYTE))
            self._communicator.Recv([message, self._mpi.BYTE], 0, _BEAT_TAG)
            if self.talk:
                self.talk.obey(bytes(message))

    def _answer(self) -> None:
        """On rank 0: answer those whose last answer is out of the way; the talk repeats nothing."""
        if not self.talk:
            return
        for rank, answer in self.talk.answers(time.monotonic()).items():
            if rank in self._answers:
                self._answers[rank].Wait()  # one of a few bytes, which the rank has long confirmed
            self._answers[rank] = self._communicator.Isend([answer, self._mpi.BYTE], dest=rank, tag=_BEAT_TAG)
