"""--include and --exclude: what a pattern matches, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from azcp_runtime.contract import ListError, UsageError
from azcp_runtime.options import parse_options
from azcp_runtime.source.listing import Entry, make_listing
from azcp_runtime.source.patterns import LONGEST_PATTERN, MOST_PATTERNS, chosen, parse_pattern
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

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
        ("[\u00e0-\u00ff].bin", ["\u00e9.bin"]),
        ("[--a].bin", ["a.bin", "x/a.bin", "x/y/a.bin"]),
        ("x/**/**/a.*", ["x/a.bin", "x/y/a.bin"]),
        ("**/x/**/b.*", ["x/y/b.txt"]),
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


@pytest.mark.parametrize("pattern", ["", "/a", "a[", "a[b/c]", "a\\", "a**", "[]", "[!]", "[z-a]"])
def test_a_pattern_that_means_nothing_is_an_error_of_the_command_line(pattern: str) -> None:
    with pytest.raises(UsageError, match="--include"):
        parse_options(["/source", "/dest", "--include", pattern])


def test_the_options_can_be_repeated() -> None:
    options = parse_options(["/s", "/d", "--include", "a", "--include", "b", "--exclude", "c"])
    assert (options.include, options.exclude) == ((b"a", b"b"), (b"c",))


def test_patterns_without_end_are_refused() -> None:
    longest = "a" * LONGEST_PATTERN
    assert parse_options(["/s", "/d", "--exclude", longest]).exclude == (longest.encode(),)
    with pytest.raises(UsageError, match="GLOB has 2049 characters, the most is 2048"):
        parse_options(["/s", "/d", "--exclude", longest + "a"])
    with pytest.raises(UsageError, match="--include is given more than 256 times"):
        parse_options(["/s", "/d", *["--include", "a"] * (MOST_PATTERNS + 1)])


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*a" * 400 + "b", "a" * 1023),
        ("*?" * 200 + "b", "a" * 1023),
        ("*[ab]c?" * 200 + "*d", "ac" * 511),
        ("**/a/" * 300 + "b", "a/" * 511 + "c"),
        ("**/*a*/" * 200 + "b", "aa/" * 340 + "c"),
        ("**/" * 600 + "*a*a*a*a*b", "a/" * 480 + "a" * 60),
        ("/".join(["*a*a*a"] * 250), "/".join(["aaa"] * 250) + "b"),
        ("*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaa/" * 200 + "a"),
    ],
)
def test_a_pattern_that_could_be_tried_in_more_ways_than_there_is_time_for_comes_to_an_end(
    pattern: str, name: str
) -> None:
    assert left([name.encode(), b"b"], [parse_pattern(pattern), b"b"]) == [b"b"]


@given(
    st.lists(
        st.sampled_from(["a", "b", "?", "*", "**", "/", "[a\u00e9]", "[!a]", "\\*", "\u00e9"]), max_size=9
    ),
    st.lists(st.sampled_from([b"a", b"b", b"*", b"/", b"\xc3\xa9", b"\xff"]), min_size=1, max_size=9),
)
@example(["**", "/", "a", "/", "**", "/", "b"], [b"b", b"/", b"a", b"/", b"a", b"/", b"a", b"/", b"b"])
@example(["a", "*", "a", "*", "a"], [b"a", b"a"])
@settings(max_examples=1000, deadline=None)
def test_a_pattern_means_what_its_definition_says(words: list[str], parts: list[bytes]) -> None:
    assume(("*", "*") not in pairwise(words))  # another word than two of one star
    try:
        pattern = parse_pattern("".join(words))
    except ValueError:
        return
    name = b"".join(parts)
    expected = defined(words, name.decode("utf-8", "surrogateescape"))
    assert left([name, b"kept/other"], [pattern, b"kept/other"]).count(name) == expected


def defined(words: list[str], name: str) -> bool:
    """Whether a pattern in words matches: the definition itself, however long it takes."""
    if "/" not in words:
        return segment(words, name.rpartition("/")[2])
    segments: list[list[str]] = [[]]
    for word in words:
        if word == "/":
            segments.append([])
        else:
            segments[-1].append(word)
    return below(segments, name.split("/"))


def below(patterns: list[list[str]], names: list[str]) -> bool:
    """The definition for segments."""
    if len(patterns) == 1 and patterns[0] in ([], ["**"]):
        return "/".join(names) != ""
    if not patterns or not names:
        return not patterns and not names
    if patterns[0] == ["**"]:
        return any(below(patterns[1:], names[skipped:]) for skipped in range(len(names)))
    return segment(patterns[0], names[0]) and below(patterns[1:], names[1:])


def segment(words: list[str], name: str) -> bool:
    """The definition for a segment."""
    if not words:
        return not name
    if words[0] in ("*", "**"):
        return any(segment(words[1:], name[skipped:]) for skipped in range(len(name) + 1))
    classes = {"?": True, "[a\u00e9]": name[:1] in ("a", "\u00e9"), "[!a]": name[:1] != "a"}
    fits = classes.get(words[0], name[:1] == words[0][-1])
    return bool(name) and fits and segment(words[1:], name[1:])
