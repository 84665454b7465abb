"""The order of a commit: bytes on the disk, then the name, then the folders that hold it."""

from __future__ import annotations

import errno
import os
import tempfile
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import WriteError
from azcp_runtime.disk import tree as disk_tree
from azcp_runtime.disk.commit import Committer
from azcp_runtime.disk.tree import Tree, syncfs_reports_errors

from tests.lab.waiting import wait_until

FEW: Final = 3
MANY: Final = 400
CONTENT: Final = b"whole"
DEADLINE_S: Final = 60.0

Event = tuple[str, object]


class RecordingTree(Tree):
    """A tree that remembers what was asked of it, in order, and does it."""

    def __init__(self, root: Path, names: Sequence[bytes]) -> None:
        sizes = array("Q", [len(CONTENT)] * len(names))
        super().__init__(root, names, sizes, direct=False, notice=lambda _text: None)
        self.events: list[Event] = []
        self.broken: set[Event] = set()

    def sync_file(self, file: int) -> None:
        """Remember it before it is done: what is written later is not covered."""
        self.remember("sync file", file)
        super().sync_file(file)

    def sync_all(self) -> None:
        """The same."""
        self.remember("sync all", None)
        super().sync_all()

    def publish(self, file: int) -> None:
        """The same."""
        self.remember("publish", file)
        super().publish(file)

    def remember(self, what: str, of: object) -> None:
        """One more event; an error where it is to break."""
        self.events.append((what, of))
        if (what, of) in self.broken:
            raise OSError(errno.EIO, "scripted") if what == "fsync" else WriteError("scripted")


@pytest.fixture
def make_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[bytes]], RecordingTree]:
    """Makes a tree whose record has every fsync too, by path."""

    def make(names: Sequence[bytes]) -> RecordingTree:
        tree = RecordingTree(tmp_path, names)
        fsync = os.fsync

        def remembered(descriptor: int) -> None:
            tree.remember("fsync", os.readlink(f"/proc/self/fd/{descriptor}"))
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", remembered)
        return tree

    return make


def names_in(folder: str, count: int) -> list[bytes]:
    return [f"{folder}f{number}".encode() for number in range(count)]


def commit(tree: RecordingTree, files: int) -> list[Exception]:
    """Write and commit so many files; what the committer reported."""
    errors: list[Exception] = []
    committer = Committer(tree, errors.append)
    for file in range(files):
        tree.write_whole(file, memoryview(CONTENT))
        tree.events.append(("written", file))
        committer.add(file)
    committer.close()
    wait_until(committer.finished, DEADLINE_S, "the committer has ended")
    return errors


def published(tree: RecordingTree) -> set[object]:
    return {of for what, of in tree.events if what == "publish"}


@pytest.mark.parametrize("count", [1, FEW, MANY])
def test_no_file_gets_its_name_before_its_own_bytes_were_synced(
    make_tree: Callable[[Sequence[bytes]], RecordingTree], count: int
) -> None:
    tree = make_tree(names_in("", count))
    assert commit(tree, count) == []
    assert published(tree) == set(range(count))
    for file in range(count):
        written, named = tree.events.index(("written", file)), tree.events.index(("publish", file))
        between = tree.events[written:named]
        assert ("sync file", file) in between or ("sync all", None) in between, file


@pytest.mark.parametrize("count", [1, FEW])
def test_a_file_that_was_not_synced_gets_no_name(
    make_tree: Callable[[Sequence[bytes]], RecordingTree], count: int
) -> None:
    tree = make_tree(names_in("", count))
    tree.broken = {("sync file", count - 1), ("sync all", None)}
    (error,) = commit(tree, count)
    assert "scripted" in str(error)
    assert count - 1 not in published(tree)
    assert not (Path(os.fsdecode(tree.target(count - 1)))).exists()


def test_many_files_that_were_not_synced_get_no_names(
    make_tree: Callable[[Sequence[bytes]], RecordingTree],
) -> None:
    tree = make_tree(names_in("", MANY))
    tree.broken = {("sync all", None), *(("sync file", file) for file in range(MANY))}
    (error,) = commit(tree, MANY)
    assert "scripted" in str(error)
    assert published(tree) == set()


@pytest.mark.parametrize("count", [1, FEW, MANY])
def test_every_folder_that_was_made_is_synced_after_the_last_name_in_it_and_so_is_the_destination(
    make_tree: Callable[[Sequence[bytes]], RecordingTree], tmp_path: Path, count: int
) -> None:
    tree = make_tree(names_in("a/b/c/", count))
    assert commit(tree, count) == []
    last = max(place for place, (what, _) in enumerate(tree.events) if what == "publish")
    afterwards = tree.events[last:]
    for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"):
        assert ("fsync", str(folder)) in afterwards or ("sync all", None) in afterwards, folder


def test_many_folders_are_all_synced_after_the_last_name(
    make_tree: Callable[[Sequence[bytes]], RecordingTree], tmp_path: Path
) -> None:
    tree = make_tree([f"d{number}/e/f".encode() for number in range(MANY)])
    assert commit(tree, MANY) == []
    last = max(place for place, (what, _) in enumerate(tree.events) if what == "publish")
    afterwards = tree.events[last:]
    folders = [tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())]
    assert len(folders) == 1 + 2 * MANY
    if ("sync all", None) not in afterwards:
        assert {str(folder) for folder in folders} <= {of for what, of in afterwards if what == "fsync"}


def test_a_kernel_whose_syncfs_hides_errors_is_not_trusted_with_many_files(
    make_tree: Callable[[Sequence[bytes]], RecordingTree], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azcp_runtime.disk.commit.syncfs_reports_errors", lambda _release: False)
    tree = make_tree(names_in("", MANY))
    assert commit(tree, MANY) == []
    for file in range(MANY):
        assert tree.events.index(("sync file", file)) < tree.events.index(("publish", file))


@pytest.mark.parametrize(
    ("release", "reports"), [("4.18.0-553.el8", False), ("5.7.19", False), ("5.8.0-53", True), ("6.1", True)]
)
def test_syncfs_reports_errors_since_linux_5_8(release: str, *, reports: bool) -> None:
    assert syncfs_reports_errors(release) == reports


def test_a_folder_that_cannot_be_synced_is_a_failure(
    make_tree: Callable[[Sequence[bytes]], RecordingTree], tmp_path: Path
) -> None:
    tree = make_tree(names_in("a/", FEW))
    tree.broken = {("fsync", str(tmp_path / "a")), ("sync all", None)}
    (error,) = commit(tree, FEW)
    assert isinstance(error, WriteError)


def test_many_files_on_another_disk_below_the_destination_are_synced_on_that_disk(
    make_tree: Callable[[Sequence[bytes]], RecordingTree], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    syncfs = disk_tree._libc.syncfs  # noqa: SLF001 - what the kernel is asked for is the point

    def remembered(descriptor: int) -> int:
        synced.add(os.fstat(descriptor).st_dev)
        return int(syncfs(descriptor))

    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        (tmp_path / "other").symlink_to(other)
        tree = make_tree(names_in("other/", MANY))
        monkeypatch.setattr(disk_tree._libc, "syncfs", remembered)  # noqa: SLF001
        assert commit(tree, MANY) == []
        by_file = {of for what, of in tree.events if what == "sync file"}
        assert os.stat(other).st_dev in synced or by_file == set(range(MANY))
