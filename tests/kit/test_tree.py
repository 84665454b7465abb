"""What is unpacked of an image's tree, and what its place may hold."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from azcp_kit.tree.folder import put_folder, writable_target
from azcp_kit.tree.tar import put_tar
from azcp_runtime.contract import AzcpError, PreflightError, UsageError

from tests.lab.tree_tar import FILE, LINK, MANIFEST, TREE, Entry, chunks


def test_all_of_it_comes_as_it_was_and_nothing_else_is_left(tmp_path: Path) -> None:
    put_folder(chunks(*TREE, owner=os.getuid()), tmp_path / "azcp")
    tree = tmp_path / "azcp"
    assert [path.name for path in tmp_path.iterdir()] == ["azcp"]
    assert oct(tree.stat().st_mode & 0o7777) == "0o755"
    assert oct((tree / "bin/shared").stat().st_mode & 0o7777) == "0o664"
    assert os.readlink(tree / "bin/near") == "azcp-launch"
    assert os.readlink(tree / "bin/far") == "/opt/azcp/bin/azcp-launch"
    assert (tree / "bin/again").samefile(tree / "bin/azcp-launch")
    assert (tree / "manifest.json").read_bytes() == MANIFEST


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_owners_are_kept(tmp_path: Path) -> None:
    put_folder(chunks(*TREE, owner=1234), tmp_path / "azcp")
    assert {path.lstat().st_uid for path in (tmp_path / "azcp").rglob("*")} == {1234}


def test_an_older_tree_is_replaced_as_a_whole_and_an_empty_folder_is_taken(tmp_path: Path) -> None:
    place = tmp_path / "azcp"
    place.mkdir()
    put_folder(chunks(*TREE), place)
    (place / "old").touch()
    put_folder(chunks(*TREE), place)
    assert not (place / "old").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["azcp"]


def full(place: Path) -> None:
    place.mkdir()
    (place / "thesis.txt").touch()


def foreign_manifest(place: Path) -> None:
    place.mkdir()
    (place / "manifest.json").write_text('{"schema": 1}')


def file(place: Path) -> None:
    place.touch()


@pytest.mark.parametrize("make", [full, foreign_manifest, file])
def test_what_is_somebody_elses_is_left_alone(tmp_path: Path, make: Callable[[Path], None]) -> None:
    place = tmp_path / "azcp"
    make(place)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="did not put there"):
        put_folder(chunks(*TREE), place)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_above_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no folder; make it first"):
        writable_target(tmp_path / "no" / "azcp")


@pytest.mark.parametrize(
    "entry",
    [
        ("azcp/../../outside", FILE, 0o644, b"x"),
        ("/etc/outside", FILE, 0o644, b"x"),
        ("azcp/link", LINK, 0o777, "/etc"),
        ("azcp/link", LINK, 0o777, "../../.."),
        ("azcp/link", LINK, 0o777, "/opt/azcp/../../etc"),
        ("azcp/null", tarfile.CHRTYPE, 0o666, b""),
    ],
)
def test_what_leads_out_of_it_is_refused_and_the_old_tree_stays(tmp_path: Path, entry: Entry) -> None:
    place = tmp_path / "shared" / "azcp"
    place.parent.mkdir()
    put_folder(chunks(*TREE), place)
    inode = place.stat().st_ino
    if entry[0].startswith("/"):
        put_folder(chunks(*TREE, entry), place)  # the filter takes it for etc/outside, beside the tree
        assert sorted(path.name for path in place.parent.iterdir()) == ["azcp"]
        return
    with pytest.raises(PreflightError, match="cannot be unpacked"):
        put_folder(chunks(*TREE, entry), place)
    assert place.stat().st_ino == inode
    assert sorted(path.name for path in place.parent.iterdir()) == ["azcp"]


def cut(chunks: Iterator[bytes], pieces: int) -> Iterator[bytes]:
    """Only so many of them."""
    return (chunk for _, chunk in zip(range(pieces), chunks, strict=False))


def link_in_its_place() -> Iterator[bytes]:
    return chunks(("azcp", LINK, 0o777, "/opt/azcp"))


@pytest.mark.parametrize(
    "stream",
    [cut(chunks(*TREE), 2), chunks(TREE[0], TREE[2]), link_in_its_place(), iter([b"no tar" * 300])],
    ids=["cut", "without a manifest", "a link", "no tar"],
)
@pytest.mark.parametrize("put", [put_folder, put_tar])
def test_a_part_of_one_gets_no_place(
    tmp_path: Path, put: Callable[[Iterator[bytes], Path], None], stream: Iterator[bytes]
) -> None:
    kept = list(stream)
    with pytest.raises(AzcpError):
        put(iter(kept), tmp_path / "place")
    assert list(tmp_path.iterdir()) == []


def test_a_tar_is_written_whole_and_replaces_nothing(tmp_path: Path) -> None:
    file = tmp_path / "azcp.tar"
    put_tar(chunks(*TREE), file)
    with tarfile.open(file) as tar:
        assert tar.getnames() == [entry[0] for entry in TREE]
    with pytest.raises(UsageError, match="File exists"):
        put_tar(chunks(*TREE), file)
    assert [path.name for path in tmp_path.iterdir()] == ["azcp.tar"]
