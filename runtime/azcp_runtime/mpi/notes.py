"""Small messages between rank 0 and the others during a run, written and read by threads.

Only the main thread calls MPI, so a message waits until that does so, which is often.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Final

from azcp_runtime.mpi.ranks import Seat

if TYPE_CHECKING:
    from mpi4py.MPI import Comm, Request

_LOOK_EVERY_S: Final = 0.01


class Notes:
    """One rank's side of it.

    Args:
        mpi: the module mpi4py.MPI.
        communicator: a duplicate of the world's, for nothing else.
        seat: this rank.
    """

    def __init__(self, mpi: ModuleType, communicator: Comm, seat: Seat) -> None:
        self._mpi = mpi
        self._communicator = communicator
        self._seat = seat
        self._outgoing: deque[tuple[bytes, int | None]] = deque()
        self._on_their_way: list[Request] = []
        self._deliver: Callable[[bytes, int], None] | None = None
        self._look_at = 0.0
        self._is_closed = False

    def send(self, message: bytes, to: int | None) -> None:
        """Have a message sent to a rank, or to all others; any thread may ask for that."""
        self._outgoing.append((message, to))

    def listen(self, deliver: Callable[[bytes, int], None]) -> None:
        """From now on hand messages to this function, with the rank that sent them; it must be quick.

        What came before stays where it is until then.
        """
        self._deliver = deliver

    def turn(self) -> None:
        """Send what waits, take what came; for the main thread alone."""
        while self._outgoing and not self._is_closed:
            self._post(*self._outgoing.popleft())
        now = time.monotonic()
        if self._deliver is None or now < self._look_at:
            return
        self._look_at = now + _LOOK_EVERY_S
        if self._on_their_way:
            self._on_their_way = [request for request in self._on_their_way if not request.Test()]
        status = self._mpi.Status()
        while self._communicator.Iprobe(self._mpi.ANY_SOURCE, 0, status):
            message = bytearray(status.Get_count(self._mpi.BYTE))
            self._communicator.Recv([message, self._mpi.BYTE], status.Get_source(), 0)
            self._deliver(bytes(message), status.Get_source())

    def close(self) -> None:
        """Send nothing any more: nobody will listen."""
        self._is_closed = True

    def _post(self, message: bytes, to: int | None) -> None:
        others = [rank for rank in range(self._seat.size) if rank != self._seat.rank]
        for rank in others if to is None else [to]:
            self._on_their_way.append(self._communicator.Isend([message, self._mpi.BYTE], rank, 0))
