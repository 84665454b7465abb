"""--include and --exclude: what a pattern matches, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from azcp_runtime.contract import ListError, UsageError
from azcp_runtime.options import parse_options
from azcp_runtime.source.listing import Entry, make_listing
from azcp_runtime.source.patterns import chosen, parse_pattern

NAMES = (
    "a.bin",
    "a.txt",
    "x/a.bin",
    "x/y/a.bin",
    "x/y/b.txt",
    "x[1].bin",
    "\u00e9.bin",
    "A.BIN",
    "line\nbreak",
    "*.bin",
)


def left(names: Iterable[bytes], include: Sequence[bytes], exclude: Sequence[bytes] = ()) -> list[bytes]:
    """The names that are left, sorted."""
    listing = make_listing(Entry(name, 1) for name in names)
    return list(chosen(listing, include, exclude).names)


def matched(*include: str, exclude: tuple[str, ...] = ()) -> set[str]:
    """The names of `NAMES` that are left."""
    patterns = [[parse_pattern(each) for each in words] for words in (include, exclude)]
    return {name.decode() for name in left((name.encode() for name in NAMES), *patterns)}


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a.bin", ["a.bin", "x/a.bin", "x/y/a.bin"]),
        ("./a.bin", []),
        ("x/*", ["x/a.bin"]),
        ("x/", ["x/a.bin", "x/y/a.bin", "x/y/b.txt"]),
        ("x/**", ["x/a.bin", "x/y/a.bin", "x/y/b.txt"]),
        ("x/**/a.bin", ["x/a.bin", "x/y/a.bin"]),
        ("**/a.bin", ["a.bin", "x/a.bin", "x/y/a.bin"]),
        ("**/y/*", ["x/y/a.bin", "x/y/b.txt"]),
        ("**", list(NAMES)),
        ("?.bin", ["a.bin", "x/a.bin", "x/y/a.bin", "\u00e9.bin", "*.bin"]),
        ("??.bin", []),
        ("\u00e9.*", ["\u00e9.bin"]),
        ("[ab].???", ["a.bin", "a.txt", "x/a.bin", "x/y/a.bin", "x/y/b.txt"]),
        ("[!a].bin", ["\u00e9.bin", "*.bin"]),
        ("[b-z].txt", ["x/y/b.txt"]),
        (r"x\[1\].bin", ["x[1].bin"]),
        ("x[[]1[]].bin", ["x[1].bin"]),
        (r"\*.bin", ["*.bin"]),
        ("line*", ["line\nbreak"]),
        ("a.+", []),
    ],
)
def test_a_pattern_matches_just_these(pattern: str, names: list[str]) -> None:
    if names:
        assert matched(pattern) == set(names)
        return
    with pytest.raises(ListError, match="none of 10 names is left"):
        matched(pattern)


def test_an_exclude_wins_over_an_include() -> None:
    assert matched("x/", exclude=("*.txt",)) == {"x/a.bin", "x/y/a.bin"}
    assert matched(exclude=("x/", "*.bin")) == {"a.txt", "A.BIN", "line\nbreak"}


def test_a_byte_that_is_no_utf_8_is_a_character() -> None:
    names = (b"\xff.bin", b"\xc3\xa9\xff")
    assert left(names, [b"?.bin"]) == [b"\xff.bin"]
    assert left(names, [b"\xc3\xa9?"]) == [b"\xc3\xa9\xff"]


def test_a_folder_without_bytes_does_not_become_a_file_when_all_below_it_is_left_out() -> None:
    listing = make_listing([Entry(b"x", 0), Entry(b"x/a", 1), Entry(b"y", 0)])
    assert chosen(listing, [], [b"x/"]).names == [b"y"]


def test_an_empty_source_is_not_blamed_on_the_patterns() -> None:
    assert left([], [b"*.bin"]) == []


@pytest.mark.parametrize("pattern", ["", "/a", "a[", "a[b/c]", "a\\", "a**", "[\u00e9]", "[z-a]"])
def test_a_pattern_that_means_nothing_is_an_error_of_the_command_line(pattern: str) -> None:
    with pytest.raises(UsageError, match="--include"):
        parse_options(["/source", "/dest", "--include", pattern])


def test_the_options_can_be_repeated() -> None:
    options = parse_options(["/s", "/d", "--include", "a", "--include", "b", "--exclude", "c"])
    assert (options.include, options.exclude) == ((b"a", b"b"), (b"c",))
