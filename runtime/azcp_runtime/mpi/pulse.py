"""What the ranks tell rank 0 beside the data: that they live, what holds them up, and why they failed.

Rank 0 answers each sign of life, so that the others know that it lives too, and what all have moved.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import BroadcastError
from azcp_runtime.mpi.backoff import LONGEST_NAP_S
from azcp_runtime.mpi.ranks import PeerFailedError, Seat

if TYPE_CHECKING:
    from mpi4py.MPI import Comm, Request

_BEAT_EVERY_S: Final = 1.0
_SILENT_AFTER_S: Final = 3.0
_BEAT: Final = struct.Struct("<Q")
_BEAT_TAG: Final = 0
"""Of a sign of life; the tag of a failure is its exit code, which is never 0."""

_ANSWER_TAG: Final = 1 << 10
"""Of rank 0's answer to it; no exit code is as large."""

_MOST_TOLD_BYTES: Final = 400

_GRACE_S: Final = 3.0
"""How long a failed rank waits for rank 0 to print its reason and end the run."""

_TURN_S: Final = 4.0
_MOST_TURNS: Final = 6
_NAMED: Final = 4


@dataclass(frozen=True, slots=True)
class Sign:
    """The last sign of life of a rank: when, the bytes it had moved, what held it up (nothing: empty)."""

    at: float
    moved: int = 0
    held_up_by: str = ""


class Pulse:
    """One rank's side of it.

    Args:
        mpi: the module mpi4py.MPI.
        communicator: a duplicate of the world's, for nothing else.
        seat: this rank.
        patience_s: after so many seconds without a sign of life a rank is given up.
        first_patience_s: the same for rank 0, which hears nobody while it waits for the account's listing.
        beside: what else travels between rank 0 and the others; each is called in every turn.
    """

    def __init__(
        self,
        mpi: ModuleType,
        communicator: Comm,
        seat: Seat,
        patience_s: float,
        first_patience_s: float,
        beside: Sequence[Callable[[], None]],
    ) -> None:
        self._beside = beside
        self._mpi = mpi
        self._communicator = communicator
        self._seat = seat
        self._patience_s = patience_s
        self._first_patience_s = first_patience_s
        self._heard = {rank: Sign(time.monotonic()) for rank in range(1, seat.size)}
        self._answers: dict[int, Request] = {}
        self._first_heard = time.monotonic()
        self._beat: Request = mpi.REQUEST_NULL
        self._beat_at = 0.0
        self._look_at = 0.0
        self._listened_at = time.monotonic()
        self._deaf_until = 0.0
        self._moved = self._moved_elsewhere = 0
        self._held_up_by: Callable[[], str] = str

    def hear(self) -> None:
        """Give a sign of life when it is time; on rank 0, take those of the others.

        Raises:
            PeerFailedError: on rank 0, when another rank has failed.
        """
        for turn in self._beside:
            turn()
        self._forgive_own_pause()
        if self._seat.rank != 0:
            self._give_sign()
            return
        status = self._mpi.Status()
        while self._communicator.Iprobe(self._mpi.ANY_SOURCE, self._mpi.ANY_TAG, status):
            source, tag = status.Get_source(), status.Get_tag()
            message = bytearray(status.Get_count(self._mpi.BYTE))
            self._communicator.Recv([message, self._mpi.BYTE], source, tag)
            if tag == _BEAT_TAG:
                told = bytes(message[_BEAT.size :]).decode("utf-8", "replace")
                moved: int = _BEAT.unpack_from(message)[0]
                self._moved_elsewhere += moved - self._heard[source].moved
                self._heard[source] = Sign(time.monotonic(), moved, told)
                self._answer(source)
            elif time.monotonic() >= self._deaf_until:
                raise PeerFailedError(message.decode("utf-8", "replace"), tag)

    def _forgive_own_pause(self) -> None:
        """What was not heard while this rank itself did not listen is nobody's silence.

        After a long pause rank 0 leaves failures to the ranks that sent them: they speak for themselves
        when rank 0 has not done so in time, and one of them may have done it already.
        """
        now = time.monotonic()
        pause = now - self._listened_at
        self._listened_at = now
        if pause > _SILENT_AFTER_S / 2:
            self._first_heard += pause
            self._heard = {rank: replace(sign, at=sign.at + pause) for rank, sign in self._heard.items()}
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
        """A number that grows while any other rank moves something; they are told what moved here.

        Rank 0 has it from all the others, and they have it from rank 0.
        """
        self._moved = here
        return self._moved_elsewhere

    def explain(self, held_up_by: Callable[[], str]) -> None:
        """From now on each sign of life says what this gives: what holds this rank up, if anything does."""
        self._held_up_by = held_up_by

    def held_up(self) -> dict[int, str]:
        """On rank 0: what holds up the ranks that said so last; elsewhere nothing."""
        return {
            rank: sign.held_up_by
            for rank, sign in self._heard.items()
            if self._seat.rank == 0 and sign.held_up_by
        }

    def silent(self, seconds: float = _SILENT_AFTER_S) -> list[int]:
        """On rank 0: the ranks that have not been heard of for so long."""
        since = time.monotonic() - seconds
        return [rank for rank, sign in self._heard.items() if self._seat.rank == 0 and sign.at < since]

    def give_up_lost(self) -> None:
        """Now and then: end the run if a rank has been silent beyond patience.

        Rank 0 looks after all the others, and they after rank 0.

        Raises:
            BroadcastError: it names them.
        """
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _BEAT_EVERY_S
        if self._seat.rank == 0:
            lost, patience_s = self.silent(self._patience_s), self._patience_s
        else:
            patience_s = self._first_patience_s
            lost = [0] if now - self._first_heard > patience_s else []
        if lost:
            names = ", ".join(self._seat.named(rank) for rank in lost[:_NAMED])
            raise BroadcastError(
                f"no sign of life from {names} for {patience_s:.0f} s",
                cause="a stopped process or a cut link",
                remedy="look at that node; --stall-timeout sets the limit",
            )

    def _give_sign(self) -> None:
        now = time.monotonic()
        while self._communicator.Iprobe(0, _ANSWER_TAG):
            answer = bytearray(_BEAT.size)
            self._communicator.Recv([answer, self._mpi.BYTE], 0, _ANSWER_TAG)
            self._first_heard, (self._moved_elsewhere,) = now, _BEAT.unpack(answer)
        if now >= self._beat_at and self._beat.Test():
            told = self._held_up_by().encode()[:_MOST_TOLD_BYTES]
            sign = [_BEAT.pack(self._moved) + told, self._mpi.BYTE]
            self._beat = self._communicator.Isend(sign, dest=0, tag=_BEAT_TAG)
            self._beat_at = now + _BEAT_EVERY_S

    def _answer(self, rank: int) -> None:
        """One at a time: a rank that does not take its answers gets no more of them."""
        if self._answers.get(rank, self._mpi.REQUEST_NULL).Test():
            answer = [_BEAT.pack(self._moved + self._moved_elsewhere), self._mpi.BYTE]
            self._answers[rank] = self._communicator.Isend(answer, dest=rank, tag=_ANSWER_TAG)
