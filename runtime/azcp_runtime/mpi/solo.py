"""A world of one rank, without MPI."""

from __future__ import annotations

import os
import socket
import sys
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NoReturn

from azcp_runtime.engine.slots import Slot
from azcp_runtime.mpi.launch import is_first
from azcp_runtime.mpi.ranks import Correspondence, Fabric, Seat, Talk


class Solo:
    """The only rank there is."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._is_first = is_first(env)
        self._seat = Seat(0, 1, 0, 1, 0, 1, (socket.gethostname(),), (0,))
        self._talk: Talk | None = None

    @property
    def seat(self) -> Seat:
        """Rank 0 of 1."""
        return self._seat

    @property
    def notes(self) -> Correspondence:
        """Nobody to write to."""
        return _NoNotes()

    def share(self, data: bytes | None) -> bytes:
        """The data itself."""
        return data or b""

    def gather(self, data: bytes) -> list[bytes]:
        """The data itself."""
        return [data]

    def reduce(self, values: array[int], how: Literal["sum", "min", "max", "and", "or"]) -> array[int]:  # noqa: ARG002 - of one value each is itself
        """The values themselves."""
        return values

    def barrier(self, *, node_only: bool = False) -> None:
        """Nobody to wait for."""

    def open_lanes(self, roots: Sequence[int]) -> Fabric:  # noqa: ARG002 - there is no other node
        """No lane carries anything."""
        return _NoFabric(self.hear)

    def hear(self) -> None:
        """Nobody else speaks."""
        if self._talk:
            self._talk.answers(time.monotonic())

    def carry(self, talk: Talk | None) -> None:
        """Said to this rank alone."""
        self._talk = talk

    def leave(self) -> None:
        """Nothing to close."""

    def fail(self, line: str, code: int) -> NoReturn:
        """End the process at once; reader and writer threads may be in the middle of a call."""
        sys.stdout.flush()
        if self._is_first:
            print(line, file=sys.stderr, flush=True)
        os._exit(code)


class _NoNotes:
    """The messages of a rank that is alone."""

    def send(self, message: bytes, to: int | None) -> None:
        """Nobody reads it."""

    def listen(self, deliver: Callable[[bytes, int], None]) -> None:
        """Nothing ever comes."""


class _NoFabric:
    """The fabric of a single node."""

    def __init__(self, hear: Callable[[], None]) -> None:
        self._hear = hear

    def post(self, lane: int, slot: Slot) -> None:
        """Nothing is ever posted: the only lane is this node's own."""
        raise AssertionError(lane, slot)

    def completed(self) -> list[Slot]:
        """Nothing was on its way."""
        self._hear()
        return []

    def moved_elsewhere(self, here: int) -> int:  # noqa: ARG002 - there is nobody to tell
        """Nothing moves elsewhere."""
        return 0

    def explain(self, held_up_by: Callable[[], str]) -> None:
        """Nobody asks."""

    def held_up(self) -> dict[int, str]:
        """Nobody else is there."""
        return {}

    def silent(self) -> list[int]:
        """Nobody else is there."""
        return []

    def close(self) -> None:
        """Nothing to give back."""
