"""The journal: what it vouches for after a crash, and what nobody can make it vouch for."""

from __future__ import annotations

import os
import shutil
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import STATE_DIR, PreflightError
from azcp_runtime.disk.commit import Committer
from azcp_runtime.disk.journal import Journal
from azcp_runtime.disk.kept import Kept, journal_path, kept_by_journal, take_stock
from azcp_runtime.disk.probe import prepare
from azcp_runtime.disk.records import RECORD_BYTES, Record, name_digest, version_digest, write_records
from azcp_runtime.disk.tree import Tree, partial_path
from azcp_runtime.source.listing import Entry, Listing, make_listing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lab.waiting import wait_until

ALIGN: Final = 4096
MIB: Final = 1 << 20
SIZE: Final = 4 * MIB + 77
SOURCE: Final = b"account/container"
DEADLINE_S: Final = 30.0


def listing_of(etag: str = '"1"', **sizes: int) -> Listing:
    return make_listing(Entry(name.encode(), size, etag) for name, size in sizes.items())


ONE: Final = listing_of(f=SIZE)


class Node:
    """A destination with what one run wrote to it."""

    def __init__(self, dest: Path, listing: Listing = ONE) -> None:
        prepare(dest)
        self.dest = dest
        self.listing = listing
        self.errors: list[Exception] = []
        self.notices: list[str] = []
        self.tree = Tree(dest, listing.names, listing.sizes, direct=False, notice=self.notices.append)
        self.journal = self.open(0)

    def open(self, rail: int) -> Journal:
        """The journal of one rank."""
        return Journal(
            journal_path(self.dest, rail),
            self.tree,
            self.listing,
            SOURCE,
            fail=self.errors.append,
            notice=self.notices.append,
        )

    def write(self, offset: int, length: int, journal: Journal | None = None) -> None:
        """A range of the file is written."""
        descriptor = self.tree.open_partial(0, direct=False)
        self.tree.write(0, descriptor, memoryview(b"x" * length), offset, direct=False)
        os.close(descriptor)
        (journal or self.journal).wrote(0, offset, length)

    def partial(self) -> Path:
        """Where the file is until it is whole."""
        return Path(os.fsdecode(partial_path(self.tree.target(0))))

    def end(self) -> None:
        """The run ends."""
        self.journal.end()
        assert self.errors == []


def kept(dest: Path, listing: Listing = ONE, source: bytes = SOURCE, *, forget: bool = False) -> Kept:
    """What the next run finds."""
    found = take_stock(dest, listing, source, forget=forget)
    assert kept_by_journal(dest, listing, source) == found  # what the node's other ranks find
    return found


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """One that has the first MiB and the tail."""
    made = Node(tmp_path / "data")
    made.write(0, MIB)
    made.write(4 * MIB, 77)
    made.end()
    return made


def test_the_next_run_finds_the_ranges_that_were_written_and_no_others(node: Node) -> None:
    assert kept(node.dest).ranges == {0: [(0, MIB), (4 * MIB, SIZE)]}
    assert kept(node.dest).whole == bytearray(1)


def test_what_was_found_stays_for_the_run_after_the_next(node: Node) -> None:
    first = kept(node.dest)
    again = Node(node.dest)
    again.write(MIB, MIB)
    again.end()
    assert first.ranges != kept(node.dest).ranges == {0: [(0, 2 * MIB), (4 * MIB, SIZE)]}


def test_journals_of_any_number_of_ranks_are_joined(node: Node) -> None:
    for rail in (1, 7):
        journal = node.open(rail)
        node.write(rail * ALIGN, ALIGN, journal)
        journal.end()
    node.write(2 * MIB, MIB, third := node.open(12))
    third.end()
    assert kept(node.dest).ranges == {0: [(0, MIB), (2 * MIB, 3 * MIB), (4 * MIB, SIZE)]}
    assert sorted(os.listdir(node.dest / STATE_DIR)) == ["journal"]


def test_a_range_is_on_record_without_an_end_of_the_run(tmp_path: Path) -> None:
    node = Node(tmp_path / "data")
    node.write(0, MIB)
    path = Path(os.fsdecode(journal_path(node.dest, 0)))
    wait_until(lambda: path.stat().st_size > RECORD_BYTES, DEADLINE_S, "the record is there")
    assert kept(node.dest).ranges == {0: [(0, MIB)]}
    node.end()


@pytest.mark.parametrize(
    ("listing", "source"),
    [
        (listing_of('"2"', f=SIZE), SOURCE),
        (listing_of(f=SIZE - 1), SOURCE),
        (ONE, b"account/other"),
        (listing_of("", f=SIZE), SOURCE),
    ],
    ids=["etag", "size", "source", "no etag"],
)
def test_ranges_of_another_version_are_dropped_for_good(node: Node, listing: Listing, source: bytes) -> None:
    assert kept(node.dest, listing, source).ranges == {}
    # The run that found it so may have written over the partial.
    assert kept(node.dest).ranges == {}


def test_ranges_of_files_that_are_not_listed_are_kept_for_their_own_data_set(node: Node) -> None:
    assert kept(node.dest, listing_of(g=SIZE)).ranges == {}
    assert kept(node.dest).ranges == {0: [(0, MIB), (4 * MIB, SIZE)]}


def test_a_record_dies_with_a_name_that_becomes_the_same_file(tmp_path: Path) -> None:
    doubled, plain = (make_listing([Entry(name, SIZE, name.decode())]) for name in (b"a//f", b"a/f"))
    for listing in (doubled, plain):
        prepare(tmp_path)
        take_stock(tmp_path, listing, SOURCE, forget=False)
        node = Node(tmp_path, listing)
        node.write(0, MIB)
        node.end()
    assert kept(tmp_path, doubled).ranges == {}


def test_compare_none_forgets_what_is_there(node: Node) -> None:
    assert kept(node.dest, forget=True).ranges == {}
    assert kept(node.dest).ranges == {}


def committed(node: Node) -> None:
    """All of the file is written and has its name."""
    node.write(0, SIZE)
    committer = Committer(node.tree, node.errors.append, node.journal)
    committer.add(0)
    committer.close()
    wait_until(committer.finished, DEADLINE_S, "it is committed")
    node.end()


def test_a_whole_file_is_vouched_for_under_its_name(tmp_path: Path) -> None:
    committed(node := Node(tmp_path / "data"))
    assert kept(node.dest) == Kept(bytearray([1]), {})
    assert kept(node.dest) == Kept(bytearray([1]), {})


def touch(path: Path) -> None:
    os.utime(path, ns=(0, 0))


def replace(path: Path) -> None:
    beside = path.with_name("beside")
    shutil.copy2(path, beside)
    os.rename(beside, path)


def grow(path: Path) -> None:
    state = path.stat()
    with path.open("ab") as file:
        file.write(b"x")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def link(path: Path) -> None:
    os.rename(path, path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("change", [touch, replace, grow, link, Path.unlink])
def test_a_whole_file_that_was_changed_is_not_vouched_for(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    committed(node := Node(tmp_path / "data"))
    change(node.dest / "f")
    assert kept(node.dest) == Kept(bytearray(1), {})


def test_a_file_that_was_killed_just_before_its_rename_has_every_byte(tmp_path: Path) -> None:
    committed(node := Node(tmp_path / "data"))
    os.rename(node.dest / "f", node.partial())
    assert kept(node.dest).ranges == {0: [(0, SIZE)]}


def test_blocks_that_were_only_reserved_are_no_content(node: Node) -> None:
    record = one_record(node, first=MIB, length=MIB)
    write_records(journal_path(node.dest, 3), record.encoded())
    assert kept(node.dest).ranges == {0: [(0, MIB), (4 * MIB, SIZE)]}


def one_record(node: Node, *, first: int, length: int, inode: int | None = None) -> Record:
    version = version_digest(SOURCE, SIZE, b'"1"')
    return Record(name_digest(b"f"), version, inode or node.partial().stat().st_ino, first, length)


@pytest.mark.parametrize(
    ("first", "length"),
    [
        (1, MIB - 1),
        (0, 5),
        (0, SIZE + 1),
        (4 * MIB, 1 << 40),
        ((1 << 64) - ALIGN, ALIGN),
        ((1 << 64) - ALIGN, (1 << 64) - 1),
        (8 * MIB, ALIGN),
    ],
)
def test_a_range_that_no_run_writes_is_none(tmp_path: Path, first: int, length: int) -> None:
    node = Node(tmp_path / "data")
    node.write(0, SIZE)
    node.end()
    write_records(journal_path(node.dest, 0), one_record(node, first=first, length=length).encoded())
    assert kept(node.dest).ranges == {}


def test_a_journal_speaks_of_one_inode(tmp_path: Path, node: Node) -> None:
    copy = tmp_path / "copy"
    shutil.copy2(node.partial(), copy)
    os.rename(copy, node.partial())
    assert kept(node.dest).ranges == {}


def test_a_copied_destination_is_not_trusted(tmp_path: Path, node: Node) -> None:
    shutil.copytree(node.dest, tmp_path / "copy")
    assert kept(tmp_path / "copy").ranges == {}


def test_a_partial_that_is_a_link_is_not_read_through(tmp_path: Path, node: Node) -> None:
    os.rename(node.partial(), tmp_path / "elsewhere")
    node.partial().symlink_to(tmp_path / "elsewhere")
    assert kept(node.dest).ranges == {}


def test_a_partial_with_a_second_name_is_not_trusted(tmp_path: Path, node: Node) -> None:
    os.link(node.partial(), tmp_path / "second")
    assert kept(node.dest).ranges == {}


def plant_link(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def plant_pipe(path: Path, _victim: Path) -> None:
    os.mkfifo(path)


def plant_zeros(path: Path, _victim: Path) -> None:
    path.write_bytes(bytes(100 * RECORD_BYTES))


def plant_a_hole(path: Path, _victim: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize("plant", [plant_link, plant_pipe, plant_zeros, plant_a_hole])
@pytest.mark.parametrize("name", ["journal", "journal-0", "new-journal"])
def test_what_was_planted_in_place_of_a_journal_harms_nobody(
    tmp_path: Path, name: str, plant: Callable[[Path, Path], None]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    dest = tmp_path / "data"
    prepare(dest)
    plant(dest / STATE_DIR / name, victim)
    assert kept(dest) == Kept(bytearray(1), {})
    node = Node(dest)
    node.write(0, MIB)
    node.end()
    assert kept(dest).ranges == {0: [(0, MIB)]}
    assert victim.read_text() == "precious"
    assert node.notices == []


def test_a_folder_in_place_of_a_journal_is_told_with_its_remedy(tmp_path: Path) -> None:
    prepare(tmp_path)
    (tmp_path / STATE_DIR / "journal").mkdir()
    with pytest.raises(PreflightError, match=r"cannot keep the journal.*; check the disk, or remove"):
        kept(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(cut=st.integers(0, 28 + 2 * RECORD_BYTES), noise=st.binary(max_size=2 * RECORD_BYTES))
def test_a_journal_that_was_torn_anywhere_vouches_for_its_whole_records(
    node: Node, cut: int, noise: bytes
) -> None:
    path = Path(os.fsdecode(journal_path(node.dest, 0)))
    (node.dest / STATE_DIR / "journal").unlink(missing_ok=True)
    parts = [(0, MIB), (4 * MIB, 77)]
    write_records(
        os.fsencode(path), b"".join(one_record(node, first=f, length=n).encoded() for f, n in parts)
    )
    with path.open("r+b") as file:
        file.truncate(cut)
        file.seek(cut)
        file.write(noise)
    count = max(0, cut - 28) // RECORD_BYTES
    found = kept(node.dest).ranges.get(0, [])
    assert found == [(first, first + length) for first, length in parts[:count]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(at=st.integers(0, 28 + 2 * RECORD_BYTES - 1), flip=st.integers(1, 255))
def test_a_journal_with_a_wrong_byte_loses_a_record_and_gains_none(node: Node, at: int, flip: int) -> None:
    path = Path(os.fsdecode(journal_path(node.dest, 0)))
    (node.dest / STATE_DIR / "journal").unlink(missing_ok=True)
    parts = [(0, MIB), (4 * MIB, 77)]
    write_records(
        os.fsencode(path), b"".join(one_record(node, first=f, length=n).encoded() for f, n in parts)
    )
    data = bytearray(path.read_bytes())
    data[at] ^= flip
    with path.open("r+b") as file:
        file.write(data)
    found = kept(node.dest).ranges.get(0, [])
    assert len(found) == (0 if at < 28 else 1)
    assert set(found) <= {(first, first + length) for first, length in parts}


def test_a_journal_that_cannot_be_written_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    dest = tmp_path / "data"
    prepare(dest)
    (dest / STATE_DIR / "journal-0").mkdir()
    committed(node := Node(dest))
    assert (dest / "f").stat().st_size == SIZE
    assert ["cannot be written" in line for line in node.notices] == [True]


def test_many_partials_share_one_sync(tmp_path: Path) -> None:
    listing = make_listing(Entry(b"f%02d" % number, MIB, '"1"') for number in range(20))
    node = Node(tmp_path / "data", listing)
    for file in range(20):
        os.close(node.tree.open_partial(file, direct=False))
        Path(os.fsdecode(partial_path(node.tree.target(file)))).write_bytes(b"y" * MIB)
        node.journal.wrote(file, 0, MIB // 2)
    node.end()
    assert kept(node.dest, listing).ranges == {file: [(0, MIB // 2)] for file in range(20)}


def test_a_small_file_has_no_ranges(tmp_path: Path) -> None:
    listing = Listing([b"f"], array("Q", [8192]), [b'"1"'], array("q", [0]), bytes(16), [])
    node = Node(tmp_path / "data", listing)
    node.write(0, 4096)
    node.end()
    assert kept(node.dest, listing).ranges == {}
