"""What nodes find out together about what each of them holds, with any number of nodes in threads."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal

from azcp_runtime.contract.units import format_size
from azcp_runtime.disk.kept import Kept
from azcp_runtime.mpi.ranks import Seat
from azcp_runtime.mpi.solo import Solo
from azcp_runtime.plan.chunks import ALIGN
from azcp_runtime.plan.presence import AZURE, SKIP, Diff, Segment, counted
from azcp_runtime.plan.ranges import merged
from azcp_runtime.source.listing import Entry, make_listing
from azcp_runtime.stages.presence import exchange, resumed_line
from hypothesis import given, settings
from hypothesis import strategies as st

NODES: Final = 3
SIZE: Final = 12 * ALIGN + 9
LISTING: Final = make_listing(Entry(name, SIZE, '"1"') for name in (b"a", b"b"))
PATIENCE_S: Final = 30.0
COMBINE: Final[dict[str, Callable[..., int]]] = {
    "sum": lambda *values: sum(values),
    "min": min,
    "or": lambda *values: values[0] | values[1] | values[2],
}


class Meeting:
    """Where the threads of one exchange leave their values for each other."""

    def __init__(self) -> None:
        self.values: dict[int, array[int]] = {}
        self.barrier = threading.Barrier(NODES, timeout=PATIENCE_S)


class Node(Solo):
    """One rank of NODES, as far as an exchange needs it."""

    def __init__(self, node: int, meeting: Meeting) -> None:
        self._seat = Seat(node, NODES, node, NODES, 0, 1, ("a", "b", "c"), (0, 1, 2))
        self._meeting = meeting

    def reduce(self, values: array[int], how: Literal["sum", "min", "max", "and", "or"]) -> array[int]:
        """Elementwise over the threads."""
        self._meeting.values[self._seat.node] = values
        self._meeting.barrier.wait()
        rows = [self._meeting.values[node] for node in range(NODES)]
        result = array("Q", (COMBINE[how](*column) for column in zip(*rows, strict=True)))
        self._meeting.barrier.wait()
        return result


@dataclass(frozen=True)
class Holding:
    """What one node has of a file: held by the policy, on record as a whole, and on record in parts."""

    is_held: bool
    is_whole: bool
    blocks: frozenset[int]

    def has(self, byte: int) -> bool:
        """Whether its own record vouches for a byte."""
        return self.is_whole or byte // ALIGN in self.blocks

    def needs(self, byte: int) -> bool:
        """Whether it must be given a byte."""
        return not self.is_held and byte // ALIGN not in self.blocks


HOLDINGS: Final = st.builds(
    Holding, st.booleans(), st.booleans(), st.frozensets(st.integers(0, SIZE // ALIGN), max_size=9)
)


def kept_of(files: tuple[Holding, Holding]) -> Kept:
    ranges = {
        file: merged((block * ALIGN, min(SIZE, (block + 1) * ALIGN)) for block in each.blocks)
        for file, each in enumerate(files)
        if each.blocks and not each.is_whole
    }
    return Kept(bytearray(each.is_whole for each in files), ranges)


def together(nodes: list[tuple[Holding, Holding]]) -> list[Diff]:
    """The diff as each node finds it."""
    meeting = Meeting()

    def one(node: int) -> Diff:
        held = bytearray(each.is_held for each in nodes[node])
        return exchange(Node(node, meeting), LISTING, held, kept_of(nodes[node]))

    with ThreadPoolExecutor(NODES) as threads:
        return list(threads.map(one, range(NODES)))


def without_parts_of_whole(each: Holding) -> Holding:
    """A file that is whole on record has no partial on record."""
    return Holding(each.is_held, each.is_whole, frozenset() if each.is_whole else each.blocks)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(HOLDINGS, HOLDINGS), min_size=NODES, max_size=NODES))
def test_every_byte_comes_from_who_has_a_record_of_it_and_from_the_source_only_if_nobody_has(
    drawn: list[tuple[Holding, Holding]],
) -> None:
    nodes = [(without_parts_of_whole(a), without_parts_of_whole(b)) for a, b in drawn]
    diffs = together(nodes)
    assert diffs[0] == diffs[1] == diffs[2]
    for file in range(2):
        holdings = [node[file] for node in nodes]
        for byte in (*range(0, SIZE, ALIGN), *range(ALIGN - 1, SIZE, ALIGN), SIZE - 1):
            origin = diffs[0].origin_of(file, byte)
            if origin == SKIP:
                assert not any(each.needs(byte) for each in holdings)
            elif origin == AZURE:
                assert not any(each.has(byte) for each in holdings)
            else:
                assert holdings[origin].has(byte)
            if all(each.is_held for each in holdings):
                assert origin == SKIP


NOTHING: Final = Holding(is_held=False, is_whole=False, blocks=frozenset())


def test_what_is_resumed_is_told_in_the_units_of_people() -> None:
    first = Holding(is_held=False, is_whole=False, blocks=frozenset({0, 1}))
    others = Holding(is_held=False, is_whole=False, blocks=frozenset({0}))
    diff = together([(first, NOTHING), (others, NOTHING), (others, NOTHING)])[0]
    part = format_size(ALIGN)
    assert resumed_line(diff, NODES) == (
        f"resumed inside 1 unfinished file: of {format_size(SIZE)} there are {part} on every node, "
        f"{part} on some nodes"
    )
    assert diff.source_bytes(LISTING.sizes) == 2 * SIZE - 2 * ALIGN
    assert (diff.azure, diff.peer, diff.skipped) == (2, 0, 0)


def test_what_one_node_resumes_is_told_without_other_nodes() -> None:
    segments = {0: [Segment(0, 3 << 20, SKIP), Segment(3 << 20, 4 << 20, AZURE)], 1: [Segment(0, 6, SKIP)]}
    told = resumed_line(counted(array("l", [AZURE, SKIP]), segments), 1)
    assert told == "resumed inside 2 unfinished files: of 4.0 MiB there are 3.0 MiB here"


def test_nothing_is_told_where_nothing_is_resumed() -> None:
    assert resumed_line(together([(NOTHING, NOTHING)] * NODES)[0], NODES) == ""
