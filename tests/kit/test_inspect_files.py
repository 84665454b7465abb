"""Paths of an image are followed inside the image, as its own programs would, and only so far."""

from __future__ import annotations

import base64
import io
import json

import pytest
from azcp_kit.inspect.container_files import Bounded, parse_stat
from azcp_kit.inspect.elf import elf_arch
from azcp_kit.inspect.files import Entry, ImageTree, Kind
from azcp_kit.inspect.ld_cache import parse_ld_cache

from tests.kit.image_tree import Content, Link, MemoryFiles, elf, ld_cache, tree

USR_MERGED: dict[str, Content] = {
    "/lib64": Link("usr/lib64"),
    "/lib": Link("usr/lib"),
    "/usr/lib64/libc.so.6": Link("../lib/libc-2.31.so"),
    "/usr/lib/libc-2.31.so": b"library",
}


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("/lib64/libc.so.6", "/usr/lib/libc-2.31.so"),
        ("/usr/lib/../lib64/./libc.so.6", "/usr/lib/libc-2.31.so"),
        ("/../../lib/libc-2.31.so", "/usr/lib/libc-2.31.so"),
        ("/", "/"),
        ("/nothing", None),
        ("/lib64/libc.so.6/x", None),
        ("/lib64/libc.so.6/..", None),
        ("lib64", None),
        ("/lib\0", None),
        ("/" + "n" * 256, None),
        ("/\ud800", None),
        ("/a" * 3000, None),
    ],
)
def test_a_path_is_resolved_inside_the_image(path: str, resolved: str | None) -> None:
    assert tree(USR_MERGED).resolve(path) == resolved


@pytest.mark.parametrize("target", ["loop", "/loop", "../../loop/x", "", "\0", "n" * 256])
def test_a_link_that_leads_nowhere_is_nothing(target: str) -> None:
    image = tree({"/loop": Link(target), "/file": b""})
    assert not image.is_program("/loop")
    assert image.read("/loop", 10) == b""


def test_a_link_out_of_the_image_stays_in_it() -> None:
    image = tree({"/etc/os-release": Link("../../../../usr/os-release"), "/usr/os-release": "ID=inside"})
    assert image.text("/etc/os-release") == "ID=inside"


def test_what_lies_below_a_missing_folder_is_not_asked_for() -> None:
    files = MemoryFiles({"/usr/bin/sh": b""})
    image = ImageTree(files)
    for name in ("a", "b", "c"):
        assert not image.exists(f"/opt/hpcx/{name}")
    assert files.asked == ["/opt"]


def test_a_file_is_read_up_to_the_limit() -> None:
    assert tree({"/file": b"123456"}).read("/file", 3) == b"123"


def test_the_names_in_a_folder_are_sorted() -> None:
    assert tree({"/etc/d/b": b"", "/etc/d/a/x": b""}).names("/etc/d") == ("a", "b")


@pytest.mark.parametrize(
    ("header", "arch"),
    [
        (elf("amd64"), "amd64"),
        (elf("arm64"), "arm64"),
        (elf("386"), "386"),
        (b"\x7fELF\x02\x02" + bytes(12) + b"\x00\x16", "s390x"),
        (b"#!/bin/sh\n" * 2, ""),
        (b"\x7fELF", ""),
        (b"\x7fELF\x02\x01" + b"BI" * 7, ""),
    ],
)
def test_the_architecture_is_that_of_the_elf_header(header: bytes, arch: str) -> None:
    assert elf_arch(header) == arch


@pytest.mark.parametrize("before", [b"", b"ld.so-1.7.0\0\0\0\0\0"])
def test_the_loaders_cache_gives_paths_by_name(before: bytes) -> None:
    cache = ld_cache({"libmpi.so.40": "/opt/mpi/libmpi.so.40", "libm.so.6": "/lib/libm.so.6"}, before)
    assert parse_ld_cache(cache) == {
        "libmpi.so.40": ("/opt/mpi/libmpi.so.40",),
        "libm.so.6": ("/lib/libm.so.6",),
    }


@pytest.mark.parametrize("keep", [0, 10, 47, 48, 60, 72, 90])
def test_a_cache_that_is_cut_short_gives_what_is_whole(keep: int) -> None:
    cache = ld_cache({"libmpi.so.40": "/opt/mpi/libmpi.so.40"})
    assert set(parse_ld_cache(cache[:keep])) <= {"", "libmpi.so.40"[: max(0, keep - 72)]}


def test_a_cache_that_lies_about_its_length_is_read_to_its_end() -> None:
    cache = bytearray(ld_cache({"libmpi.so.40": "/opt/mpi/libmpi.so.40"}))
    cache[20:24] = b"\xff" * 4
    assert parse_ld_cache(bytes(cache))["libmpi.so.40"] == ("/opt/mpi/libmpi.so.40",)


@pytest.mark.parametrize(
    ("mode", "entry"),
    [
        (0o755, Entry(Kind.FILE, 4, is_executable=True)),
        (0o644, Entry(Kind.FILE, 4)),
        (1 << 31 | 0o755, Entry(Kind.FOLDER)),
        (1 << 27 | 0o777, Entry(Kind.LINK, target="/usr/bin/dash")),
        (1 << 25 | 0o777, Entry(Kind.OTHER, 4, is_executable=True)),
        (1 << 26 | 1 << 21 | 0o600, Entry(Kind.OTHER, 4)),
    ],
)
def test_the_engines_description_of_a_path_is_understood(mode: int, entry: Entry) -> None:
    stat = {"name": "sh", "size": 4, "mode": mode, "mtime": "", "linkTarget": "/usr/bin/dash"}
    assert parse_stat(base64.b64encode(json.dumps(stat).encode()).decode()) == entry


@pytest.mark.parametrize("header", ["", "%", "W10=", "e30="])
def test_a_description_that_is_none_is_nothing(header: str) -> None:
    assert parse_stat(header) is None


def test_a_stream_ends_at_its_limit() -> None:
    bounded = Bounded(io.BytesIO(b"x" * 100).read, 30)
    assert [len(bounded.read(20)) for _ in range(3)] == [20, 10, 0]
