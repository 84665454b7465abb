"""What the rest of the runtime knows of the ranks: who they are, and what they can do together."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NoReturn, Protocol

from azcp_runtime.engine.slots import Slot

OTHERS_PATIENCE: Final = 3
"""Rank 0 hears of everybody and speaks first; the others wait so many times as long, and for it alone."""


class PeerFailedError(Exception):
    """Another rank has failed; raised on rank 0, which prints that rank's line and ends the run."""

    def __init__(self, line: str, code: int) -> None:
        self.line = line
        self.code = code
        super().__init__(line)


@dataclass(frozen=True, slots=True)
class Seat:
    """One rank's place.

    Attributes:
        rank: rank in the world.
        size: ranks in the world.
        node: index of its node.
        nodes: number of nodes.
        rail: its index among the ranks of its node.
        rails: ranks per node.
        hosts: the name of each node.
        node_of: the node of each rank.
    """

    rank: int
    size: int
    node: int
    nodes: int
    rail: int
    rails: int
    hosts: tuple[str, ...]
    node_of: tuple[int, ...]

    @property
    def host(self) -> str:
        """The name of this rank's node."""
        return self.hosts[self.node]

    def named(self, rank: int) -> str:
        """A rank of the world for messages."""
        return f"rank {rank} on {self.hosts[self.node_of[rank]]}"

    def at(self, index: int) -> int:
        """The rank of the world that the plan counts as this one."""
        node, rail = divmod(index, self.rails)
        return [rank for rank, its_node in enumerate(self.node_of) if its_node == node][rail]

    @property
    def index(self) -> int:
        """Node x rails + rail: how the plan counts ranks, whatever order the launcher gave them."""
        return self.node * self.rails + self.rail


class Talk(Protocol):
    """What ranks say to rank 0 of their reads, and what it answers; the main thread calls it."""

    def report(self, now: float, *, is_due: bool) -> bytes | None:
        """Something for rank 0; a sign of life goes out now anyway where ``is_due``."""

    def hear(self, rank: int, report: bytes) -> None:
        """On rank 0: what a rank of the world said."""

    def answers(self, now: float) -> dict[int, bytes]:
        """On rank 0: what to tell which rank now."""

    def obey(self, answer: bytes) -> None:
        """What rank 0 said."""


class Fabric(Protocol):
    """The lanes of this rail and the broadcasts on their way."""

    def post(self, lane: int, slot: Slot) -> None:
        """Post the lane's next broadcast: its root sends the slot's message, the others receive into it.

        Broadcasts of one lane match in the order in which they are posted; lanes do not order each other.
        """

    def completed(self) -> list[Slot]:
        """Slots whose broadcast has ended here since the last call; also moves all that is on its way."""

    def moved_elsewhere(self, here: int) -> int:
        """Tell rank 0 how many bytes have moved here; on rank 0, how many it has heard of; elsewhere 0."""

    def explain(self, held_up_by: Callable[[], str]) -> None:
        """Let rank 0 know, with each sign of life, what holds this rank up; empty for nothing."""

    def held_up(self) -> Mapping[int, str]:
        """On rank 0 what holds up the other ranks (of the world), as they said; elsewhere nothing."""

    def silent(self) -> list[int]:
        """On rank 0 the ranks (of the world) that give no sign of life any more; elsewhere none."""

    def close(self) -> None:
        """Give the lanes back; on all ranks, when nothing is on its way."""


class Correspondence(Protocol):
    """Small messages between rank 0 and the others, sent by any thread, in the order of sending."""

    def send(self, message: bytes, to: int | None) -> None:
        """Have it sent to a rank, or to all others."""

    def listen(self, deliver: Callable[[bytes, int], None]) -> None:
        """Hand what comes to this function of (message, rank), which must be quick."""


class Ranks(Protocol):
    """What the ranks of a world do together. All must make the same calls in the same order."""

    @property
    def seat(self) -> Seat:
        """This rank's place."""

    @property
    def notes(self) -> Correspondence:
        """Messages beside the stages."""

    def share(self, data: bytes | None) -> bytes:
        """Rank 0's data on every rank."""

    def gather(self, data: bytes) -> list[bytes]:
        """Every rank's data on rank 0, by rank; an empty list elsewhere."""

    def reduce(self, values: array[int], how: Literal["sum", "min", "max", "and", "or"]) -> array[int]:
        """Elementwise over all ranks' values, on every rank."""

    def barrier(self, *, node_only: bool = False) -> None:
        """Wait for all ranks, or for those of this node, without spinning."""

    def open_lanes(self, roots: Sequence[int]) -> Fabric:
        """A lane across the nodes of this rail for each root node."""

    def hear(self) -> None:
        """To be called now and then in long work of a rank's own.

        The others learn that it lives, and rank 0 learns of their failures.
        """

    def carry(self, talk: Talk | None) -> None:
        """Carry this beside the signs of life, in `hear` and in the fabric's calls; None to stop it."""

    def leave(self) -> None:
        """The run has ended well; nothing of MPI may be used after this."""

    def fail(self, line: str, code: int) -> NoReturn:
        """End the run on every rank with this exit code; the line is printed once."""
