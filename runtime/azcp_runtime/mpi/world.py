"""The door to MPI: the only module that imports mpi4py.

Only the main thread calls MPI, so MPI_THREAD_FUNNELED is enough. Every wait polls and backs off:
ranks that wait for rank 0's listing, or for a slow peer, leave their cores to those that work.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
import time
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from azcp_runtime.contract import ENV_SIMULATE_NODES, UsageError
from azcp_runtime.engine.slots import Slot
from azcp_runtime.mpi.backoff import LONGEST_NAP_S, Backoff
from azcp_runtime.mpi.ranks import Fabric, PeerFailedError, Seat

if TYPE_CHECKING:
    from mpi4py.MPI import Comm, Request

LARGEST_CALL_BYTES: Final = 1 << 30
"""No MPI call carries more: counts are C ints, and some layers overflow at 2 or 4 GiB."""

_MCA_DEFAULTS: Final = {
    # Every owner sends at once, so the linear algorithm uses all links; trees only add hops.
    "OMPI_MCA_coll_libnbc_ibcast_algorithm": "1",
    # Two ranks on one core must not starve each other, and threads of ours share it.
    "OMPI_MCA_mpi_yield_when_idle": "1",
}

_RANK_ZERO_GRACE_S: Final = 3.0
"""How long a failed rank waits for rank 0 to print its reason and end the run."""

_TURN_S: Final = 4.0
_MOST_TURNS: Final = 6

_BEAT_EVERY_S: Final = 1.0
_BEAT: Final = struct.Struct("<Q")
_BEAT_TAG: Final = 0
"""Of a sign of life; the tag of a failure is its exit code, which is never 0."""


class World:
    """All ranks that mpirun or srun started."""

    def __init__(self, env: Mapping[str, str]) -> None:
        _choose_library()
        for name, value in _MCA_DEFAULTS.items():
            os.environ.setdefault(name, value)
        import mpi4py

        mpi4py.rc.initialize = False
        from mpi4py import MPI

        provided = MPI.Init_thread(MPI.THREAD_FUNNELED)
        if provided < MPI.THREAD_FUNNELED:
            raise UsageError("this MPI library has no thread support", remedy="build it with it")
        self._mpi = MPI
        self._world = MPI.COMM_WORLD
        self._seat = self._find_seat(env)
        self._rail = self._world.Split(self._seat.rail, self._seat.node)
        self._node = self._world.Split(self._seat.node, self._seat.rail)
        self._tell = self._world.Dup()
        self._heard: dict[int, tuple[float, int]] = {}
        self.moved = 0
        self._beat: Request = MPI.REQUEST_NULL
        self._beat_at = 0.0

    @property
    def seat(self) -> Seat:
        """This rank's place."""
        return self._seat

    def share(self, data: bytes | None) -> bytes:
        """Rank 0's data on every rank, in calls of at most 1 GiB."""
        length = array("Q", [len(data or b"")])
        self._wait(self._world.Ibcast([length, self._mpi.UINT64_T], root=0))
        buffer = bytearray(data or length[0])
        view = memoryview(buffer)
        for start in range(0, length[0], LARGEST_CALL_BYTES):
            part = view[start : start + LARGEST_CALL_BYTES]
            self._wait(self._world.Ibcast([part, self._mpi.BYTE], root=0))
        return bytes(buffer)

    def gather(self, data: bytes) -> list[bytes]:
        """Every rank's data on rank 0."""
        sizes = array("Q", bytes(8 * self._seat.size))
        self._wait(
            self._world.Iallgather(
                [array("Q", [len(data)]), 1, self._mpi.UINT64_T], [sizes, 1, self._mpi.UINT64_T]
            )
        )
        root = self._seat.rank == 0
        buffer = bytearray(sum(sizes) if root else 0)
        places = [sum(sizes[:rank]) for rank in range(self._seat.size)]
        receive = [buffer, (list(sizes), places), self._mpi.BYTE] if root else None
        self._wait(self._world.Igatherv([data, self._mpi.BYTE], receive, root=0))
        return [bytes(buffer[at : at + size]) for at, size in zip(places, sizes, strict=True)] if root else []

    def reduce(self, values: array[int], how: Literal["sum", "min", "max", "and", "or"]) -> array[int]:
        """Elementwise over all ranks' unsigned 64-bit values."""
        mpi = self._mpi
        operation = {"sum": mpi.SUM, "min": mpi.MIN, "max": mpi.MAX, "and": mpi.BAND, "or": mpi.BOR}[how]
        result = array("Q", bytes(8 * len(values)))
        step = LARGEST_CALL_BYTES // 8
        for start in range(0, len(values), step):
            send, into = memoryview(values)[start : start + step], memoryview(result)[start : start + step]
            self._wait(self._world.Iallreduce([send, mpi.UINT64_T], [into, mpi.UINT64_T], op=operation))
        return result

    def barrier(self, *, node_only: bool = False) -> None:
        """Wait for all ranks, or for those of this node."""
        self._wait((self._node if node_only else self._world).Ibarrier())

    def open_lanes(self, roots: Sequence[int]) -> Fabric:
        """A duplicate of this rail's communicator for each root node."""
        communicators = []
        for _ in roots:
            communicator, request = self._rail.Idup()
            self._wait(request)
            communicators.append(communicator)
        return _Lanes(self, self._mpi, communicators, roots)

    def leave(self) -> None:
        """Meet the other ranks and finalize MPI, which spins while it waits for them."""
        self.barrier()
        self._mpi.Finalize()

    def fail(self, line: str, code: int) -> NoReturn:
        """End every rank. Rank 0 prints, so that a fault that all ranks see is told once."""
        sys.stdout.flush()
        # mpirun ends the others with SIGTERM; this rank's reason is told already.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self._seat.rank != 0:
            message = self._tell.Isend([line.encode(), self._mpi.BYTE], dest=0, tag=code)
            # One after the other, so that where rank 0 is stopped only one of them has to speak.
            turn = min(self._seat.rank, _MOST_TURNS) - 1
            deadline = time.monotonic() + _RANK_ZERO_GRACE_S + turn * _TURN_S
            while time.monotonic() < deadline:
                message.Test()
                time.sleep(LONGEST_NAP_S)
        # Rank 0 itself, or a rank whose rank 0 does not answer.
        print(line, file=sys.stderr, flush=True)
        self._world.Abort(code)
        raise SystemExit(code)

    def hear(self) -> None:
        """Take part in what the ranks tell rank 0: that they live, and why they failed.

        Raises:
            PeerFailedError: on rank 0, when another rank has failed.
        """
        now = time.monotonic()
        if self._seat.rank != 0:
            if now >= self._beat_at and self._beat.Test():
                beat = [_BEAT.pack(self.moved), self._mpi.BYTE]
                self._beat = self._tell.Isend(beat, dest=0, tag=_BEAT_TAG)
                self._beat_at = now + _BEAT_EVERY_S
            return
        status = self._mpi.Status()
        while self._tell.Iprobe(self._mpi.ANY_SOURCE, self._mpi.ANY_TAG, status):
            text = bytearray(status.Get_count(self._mpi.BYTE))
            self._tell.Recv([text, self._mpi.BYTE], status.Get_source(), status.Get_tag())
            if status.Get_tag() == _BEAT_TAG:
                self._heard[status.Get_source()] = (now, _BEAT.unpack(text)[0])
            else:
                raise PeerFailedError(text.decode("utf-8", "replace"), status.Get_tag())

    def moved_elsewhere(self, here: int) -> int:
        """What the other ranks said they have moved; rank 0 is told what moved here."""
        self.moved = here
        return sum(moved for _, moved in self._heard.values())

    def silent(self) -> list[int]:
        """On rank 0: the ranks that have not been heard of for several beats."""
        if self._seat.rank != 0:
            return []
        since = time.monotonic() - 3 * _BEAT_EVERY_S
        return [rank for rank in range(1, self._seat.size) if self._heard.get(rank, (0.0, 0))[0] < since]

    def _wait(self, request: Request) -> None:
        backoff = Backoff()
        while not request.Test():
            self.hear()
            backoff.nap()

    def _find_seat(self, env: Mapping[str, str]) -> Seat:
        rank, size = self._world.Get_rank(), self._world.Get_size()
        host = self._mpi.Get_processor_name()
        simulated = _simulated_nodes(env, size)
        names = self._world.allgather(f"node{rank * simulated // size}" if simulated else host)
        by_name: dict[str, list[int]] = {}
        for other, name in enumerate(names):
            by_name.setdefault(name, []).append(other)
        nodes, members = list(by_name), list(by_name.values())
        counts = {len(ranks) for ranks in members}
        if len(counts) > 1:
            uneven = ", ".join(f"{node}: {len(ranks)}" for node, ranks in zip(nodes, members, strict=True))
            raise UsageError(
                f"the nodes have different numbers of ranks ({uneven[:500]})",
                remedy="start as many ranks on each node, such as mpirun --map-by ppr:1:node",
            )
        index = {name: place for place, name in enumerate(nodes)}
        node = index[names[rank]]
        mine = members[node]
        hosts = self._world.allgather(host)
        return Seat(
            rank,
            size,
            node,
            len(nodes),
            mine.index(rank),
            len(mine),
            tuple(hosts[ranks[0]] for ranks in members),
            tuple(index[name] for name in names),
        )


class _Lanes:
    """The lanes of a rail: one communicator each, so that a slow root holds back no other."""

    def __init__(
        self, world: World, mpi: ModuleType, communicators: list[Comm], roots: Sequence[int]
    ) -> None:
        self._world = world
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
        self._world.hear()
        ended = self._mpi.Request.Testsome(self._requests) if self._requests else None
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
        return self._world.moved_elsewhere(here)

    def silent(self) -> list[int]:
        """What the world says."""
        return self._world.silent()


def _simulated_nodes(env: Mapping[str, str], size: int) -> int:
    text = env.get(ENV_SIMULATE_NODES, "")
    if not text:
        return 0
    if not text.isdigit() or int(text) < 1 or size % int(text):
        raise UsageError(f"{ENV_SIMULATE_NODES}={text!r} does not divide {size} ranks")
    return int(text)


def _choose_library() -> None:
    """Name the libmpi of this very prefix: mpi4py would else take whatever the loader finds first."""
    own = Path(sys.prefix, "lib", "libmpi.so.40")
    if own.exists():
        os.environ.setdefault("MPI4PY_LIBMPI", str(own))
