"""The destination: partials, padding, commits, and what is found before a byte is read."""

from __future__ import annotations

import mmap
import os
import subprocess
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
from azcp_runtime.contract import PARTIAL_PREFIX, PreflightError, WriteError
from azcp_runtime.disk.commit import Committer
from azcp_runtime.disk.descriptors import Descriptors
from azcp_runtime.disk.probe import check_obstacles, check_space, direct_works, lock, prepare
from azcp_runtime.disk.tree import Tree, partial_path, syncfs_reports_errors
from azcp_runtime.plan.chunks import ALIGN


def tree_of(root: Path, files: dict[bytes, int], *, direct: bool = False) -> Tree:
    return Tree(root, list(files), array("Q", files.values()), direct=direct, notice=lambda _text: None)


def page_aligned(data: bytes) -> memoryview:
    buffer = mmap.mmap(-1, -(-len(data) // ALIGN) * ALIGN)
    buffer[: len(data)] = data
    return memoryview(buffer)


def end(committer: Committer) -> None:
    committer.close()
    deadline = time.monotonic() + 60
    while not committer.finished():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def unexpected(error: Exception) -> None:
    raise AssertionError(error)


@pytest.fixture(params=[True, False], ids=["direct", "buffered"])
def direct(request: pytest.FixtureRequest, tmp_path: Path) -> bool:
    prepare(tmp_path)
    wanted = bool(request.param)
    return wanted and direct_works(tmp_path)


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 300_001])
def test_a_file_has_its_exact_size_whatever_its_tail(tmp_path: Path, size: int, *, direct: bool) -> None:
    tree = tree_of(tmp_path, {b"d/f": size}, direct=direct)
    data = os.urandom(size)
    descriptors = Descriptors(tree)
    view = page_aligned(data) if direct else memoryview(data)
    with descriptors.use(0) as descriptor:
        tree.write(0, descriptor, view, 0, direct=direct)
    descriptors.finish(0)
    tree.sync_file(0)
    assert not (tmp_path / "d" / "f").exists()
    tree.publish(0)
    assert (tmp_path / "d" / "f").read_bytes() == data
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["f"]


def test_errors_of_write_back_are_told_by_syncfs_since_5_8() -> None:
    releases = ("5.8.0", "6.18.44-fc", "5.4.0-1103-azure", "4.18.0-553.el8", "odd")
    assert [syncfs_reports_errors(each) for each in releases] == [True, True, False, False, False]


def test_a_partial_of_another_size_does_not_leave_its_tail(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {b"f": 10_000})
    Path(os.fsdecode(partial_path(tree.target(0)))).write_bytes(b"old" * 100_000)
    descriptors = Descriptors(tree)
    with descriptors.use(0) as descriptor:
        tree.write(0, descriptor, memoryview(b"n" * 10_000), 0, direct=False)
    descriptors.finish(0)
    tree.publish(0)
    assert (tmp_path / "f").read_bytes() == b"n" * 10_000


def test_a_partial_name_fits_beside_the_longest_name(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {b"x" * 255: 3})
    tree.write_whole(0, memoryview(b"abc"))
    tree.publish(0)
    assert (tmp_path / ("x" * 255)).read_bytes() == b"abc"


def test_no_two_names_share_a_partial_and_each_fits() -> None:
    long = b"x" * 255
    disguised = os.path.basename(partial_path(b"/d/" + long)).removeprefix(PARTIAL_PREFIX.encode())
    names = [b"a", b"b", b"y" * 200, b"y" * 201, b"y" * 202, long, disguised]
    partials = {partial_path(b"/d/" + name) for name in names}
    assert len(partials) == len(names)
    assert all(os.path.basename(path).startswith(PARTIAL_PREFIX.encode()) for path in partials)
    assert max(len(os.path.basename(path)) for path in partials) <= 255


def test_idle_descriptors_are_closed_when_there_are_too_many(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {f"f{i}".encode(): ALIGN + i for i in range(40)})
    descriptors = Descriptors(tree, most=4)
    before = len(os.listdir("/proc/self/fd"))
    for file in range(40):
        with descriptors.use(file) as descriptor:
            tree.write(file, descriptor, memoryview(b"z" * (ALIGN + file)), 0, direct=False)
        assert len(os.listdir("/proc/self/fd")) <= before + 4
    for file in range(40):
        descriptors.finish(file)
        tree.publish(file)
    assert [(tmp_path / f"f{i}").stat().st_size for i in range(40)] == [ALIGN + i for i in range(40)]
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("count", [1, 8, 9, 500])
def test_the_committer_names_every_file_it_was_given(tmp_path: Path, count: int) -> None:
    tree = tree_of(tmp_path, {f"{i % 7}/f{i}".encode(): 2 for i in range(count)})
    committer = Committer(tree, unexpected)
    for file in range(count):
        tree.write_whole(file, memoryview(b"hi"))
        committer.add(file)
    end(committer)
    assert committer.committed == count
    assert sum(path.read_bytes() == b"hi" for path in tmp_path.rglob("f*")) == count


def test_the_committer_hands_on_what_went_wrong(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {b"never-written": 2})
    errors: list[Exception] = []
    committer = Committer(tree, errors.append)
    committer.add(0)
    end(committer)
    assert isinstance(errors[0], WriteError)
    assert "never-written" in str(errors[0])


def test_a_missing_parent_is_taken_for_a_disk_that_is_not_mounted(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="is the disk mounted"):
        prepare(tmp_path / "nvme" / "data")


def test_a_destination_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    with pytest.raises(PreflightError, match="not a folder"):
        prepare(tmp_path / "data")


def test_a_file_in_place_of_the_runtimes_own_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / ".azcp").write_text("x")
    with pytest.raises(PreflightError, match=r"\.azcp is not a folder; remove it"):
        prepare(tmp_path)


def test_obstacles_of_both_kinds_are_named_together(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PreflightError, match="file is not a folder; folder is a folder"):
        check_obstacles(tmp_path, [b"file/x", b"folder"])


def test_a_file_above_the_folder_of_a_file_is_an_obstacle(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("x")
    with pytest.raises(PreflightError, match="a/b is not a folder"):
        check_obstacles(tmp_path, [b"a/b/c/d", b"a/e/f"])


def test_a_link_above_a_file_is_an_obstacle_wherever_it_leads(tmp_path: Path) -> None:
    (tmp_path / "v1").mkdir()
    (tmp_path / "latest").symlink_to("v1")
    (tmp_path / "gone").symlink_to("nowhere")
    with pytest.raises(PreflightError, match="gone is a link; latest is a link"):
        check_obstacles(tmp_path, [b"latest/deep/w", b"v1/w", b"gone/w"])
    check_obstacles(tmp_path, [b"v1/w", b"latest"])


def test_less_space_than_needed_is_refused_with_both_figures(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=r"free, 1024.0 TiB are needed"):
        check_space(tmp_path, 1 << 50)


def test_a_second_run_in_the_same_destination_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path)
    first = lock(tmp_path)
    with pytest.raises(PreflightError, match="another run is writing"):
        lock(tmp_path)
    os.close(first)
    os.close(lock(tmp_path))


def planted_link(path: bytes, victim: Path) -> None:
    os.symlink(victim, path)


def planted_name(path: bytes, victim: Path) -> None:
    os.link(victim, path)


def planted_pipe(path: bytes, _victim: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("plant", [planted_link, planted_name, planted_pipe])
@pytest.mark.parametrize("size", [5, 500_000])
def test_what_was_planted_as_a_partial_is_replaced_and_never_written_into(
    tmp_path: Path, size: int, plant: Callable[[bytes, Path], None]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    tree = tree_of(tmp_path, {b"f": size})
    plant(partial_path(tree.target(0)), victim)
    if size == 5:
        tree.write_whole(0, memoryview(b"fresh"))
    else:
        os.close(tree.open_partial(0, direct=False))
    tree.publish(0)
    assert victim.read_text() == "precious"
    assert (tmp_path / "f").stat().st_size == size
    assert (tmp_path / "f").is_file()


def test_a_very_deep_folder_is_made(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {b"d/" * 1500 + b"f": 2})
    try:
        tree.write_whole(0, memoryview(b"ok"))
        tree.publish(0)
        assert Path(os.fsdecode(tree.target(0))).read_bytes() == b"ok"
    finally:
        # pytest's own clean-up calls itself for each folder, and would give up on this tree.
        subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def test_the_folders_above_a_file_end_at_the_destination(tmp_path: Path) -> None:
    root = os.fsencode(tmp_path) + b"/"
    assert list(tree_of(tmp_path, {b"a/b/f": 1}).folders_above(0)) == [root + b"a/b", root + b"a", root]
    assert list(tree_of(Path("/"), {b"f": 1}).folders_above(0)) == [b"/"]
