"""The lanes of a rail: broadcasts on duplicate communicators, posted and waited for together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import BroadcastError
from azcp_runtime.engine.slots import Slot
from azcp_runtime.mpi.pulse import Pulse

if TYPE_CHECKING:
    from mpi4py.MPI import Comm, Request

LARGEST_CALL_BYTES: Final = 1 << 30
"""No MPI call carries more: counts are C ints, and some layers overflow at 2 or 4 GiB."""


class Lanes:
    """The lanes of a rail: one communicator each, so that a slow root holds back no other.

    Args:
        pulse: what the ranks tell rank 0.
        mpi: the module mpi4py.MPI.
        communicators: duplicates of the rail's.
        roots: the root of each.
        give_back: takes the communicators afterwards: an MPI library has only so many, and a thousand
            of them take their time to be made.
    """

    def __init__(
        self,
        pulse: Pulse,
        mpi: ModuleType,
        communicators: list[Comm],
        roots: Sequence[int],
        give_back: Callable[[list[Comm]], None],
    ) -> None:
        self._give_back = give_back
        self._pulse = pulse
        self._mpi = mpi
        self._communicators = communicators
        self._roots = roots
        self._requests: list[Request] = []
        self._slots: list[Slot] = []

    def post(self, lane: int, slot: Slot) -> None:
        """Post the lane's next broadcast, in calls of at most 1 GiB."""
        communicator, root = self._communicators[lane], self._roots[lane]
        slot.calls = 0
        for at in range(0, len(slot.message), LARGEST_CALL_BYTES):
            part = slot.message[at : at + LARGEST_CALL_BYTES]
            self._requests.append(communicator.Ibcast([part, self._mpi.BYTE], root))
            self._slots.append(slot)
            slot.calls += 1

    def completed(self) -> list[Slot]:
        """Slots whose every call has ended."""
        self._pulse.hear()
        try:
            ended = self._mpi.Request.Testsome(self._requests) if self._requests else None
        except self._mpi.Exception as error:
            raise mpi_error(error) from None
        whole = []
        for at in sorted(ended or (), reverse=True):
            slot = self._slots[at]
            slot.calls -= 1
            if not slot.calls:
                whole.append(slot)
            # The last entry fills the gap: what stays in the list is only what is on its way.
            self._requests[at], self._slots[at] = self._requests[-1], self._slots[-1]
            del self._requests[-1], self._slots[-1]
        return whole

    def moved_elsewhere(self, here: int) -> int:
        """What the world says."""
        return self._pulse.moved_elsewhere(here)

    def explain(self, held_up_by: Callable[[], str]) -> None:
        """Told to the world."""
        self._pulse.explain(held_up_by)

    def held_up(self) -> Mapping[int, str]:
        """What the world says."""
        return self._pulse.held_up()

    def silent(self) -> list[int]:
        """What the world says."""
        return self._pulse.silent()

    def close(self) -> None:
        """Leave the communicators to the lanes of the next."""
        self._pulse.explain(str)
        self._give_back(self._communicators)


def mpi_error(error: Exception) -> BroadcastError:
    """What the MPI library says of a call that failed."""
    return BroadcastError(
        f"MPI: {error}", cause="a dead rank or a cut link", remedy="look at the nodes' own messages"
    )
