"""--include and --exclude: which names below the prefix belong to the data set.

A pattern is matched against the name as listed, upper and lower case apart. ``*`` is any run of characters
and ``?`` one, neither of them a slash; ``**`` as a whole segment is any number of segments, none too;
``[abc]``, ``[a-z]`` and ``[!a]`` are one character; a backslash takes the next character as it is. A pattern
without a slash is matched against the last segment, one with a slash against the whole name, and one that
ends in a slash stands for all below that folder. A byte that is no UTF-8 is a character by itself.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Final

from azcp_runtime.contract import ListError
from azcp_runtime.source.listing import Listing, select
from azcp_runtime.source.names import shown

MOST_PATTERNS: Final = 256
"""Of one option: each is tried on every name."""

LONGEST_PATTERN: Final = 2048
"""Characters: a blob's name has 1,024 at most, and a backslash may stand before each."""

_SAID: Final = 8
"""Patterns in a message."""

_FOLDER: Final = "(?:[^/]*/)"
_TOKEN: Final = re.compile(r"\*+|\?|\[!?\]?[^\]]*\]|\\.|[^*?\[\\]+|.", re.DOTALL)
_MEMBER: Final = re.compile(r"(.)-(.)|(.)", re.DOTALL)


def parse_pattern(text: str) -> bytes:
    """The bytes of a pattern on the command line.

    Raises:
        ValueError: nothing can match it.
    """
    if not text:
        raise ValueError("GLOB is empty")
    if len(text) > LONGEST_PATTERN:
        raise ValueError(f"GLOB has {len(text)} characters, the most is {LONGEST_PATTERN}")
    if text.startswith("/"):
        raise ValueError(f"{text!r} begins with a slash: names are relative to SOURCE")
    try:
        expression(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no pattern: {error}") from None
    return text.encode("utf-8", "surrogateescape")


def expression(pattern: str) -> str:
    """The regular expression that matches the same whole names.

    It never goes back behind a part that has matched: what stands between two stars takes the first place
    that fits, for a later one leaves less to the rest. So a match costs at most pattern times name.

    Raises:
        ValueError: a bracket is not closed, a backslash ends the pattern, or a ** is part of a segment.
    """
    if "/" not in pattern:
        return r"(?>(?:.*/)?)" + _segment(pattern)
    *folders, last = pattern.split("/")
    first, *runs = _between_double_stars(folders)
    if last in ("", "**"):
        return first + "".join(map(_soonest, runs)) + ".+"
    if not runs:
        return first + _segment(last)
    # The last run must reach the name's end, so that it is tried from each folder.
    return first + "".join(map(_soonest, runs[:-1])) + f"{_FOLDER}*{runs[-1]}{_segment(last)}"


def chosen(listing: Listing, include: Sequence[bytes], exclude: Sequence[bytes]) -> Listing:
    """The files that an include matches, or all without any, less those that an exclude matches.

    Markers of folders must be gone before: a name is known as one only beside the names below it.

    Raises:
        ListError: there are files, and none is left.
    """
    if not include and not exclude:
        return listing
    wanted, unwanted = _any_of(include or (b"**",)), _any_of(exclude)
    keep = array("Q")
    for file, name in enumerate(map(_text, listing.names)):
        if wanted.fullmatch(name) and not (exclude and unwanted.fullmatch(name)):
            keep.append(file)
    if len(listing) and not keep:
        said = _said("--include", include) + _said("--exclude", exclude)
        raise ListError(
            f"none of {len(listing)} names is left by{said}",
            cause="patterns are matched against names below SOURCE",
            remedy=_folder_meant(listing.names, include)
            or "* stops at a slash, ** does not; quote patterns, or the shell replaces them",
        )
    return select(listing, keep) if len(keep) < len(listing) else listing


def _folder_meant(names: Sequence[bytes], include: Sequence[bytes]) -> str:
    """What to write instead of a pattern that names a folder without saying so."""
    for pattern in include[:_SAID]:
        below = _any_of([pattern + b"/"])
        if not pattern.endswith(b"/") and any(below.fullmatch(_text(name)) for name in names):
            return f"a folder is {shown(pattern)}/"
    return ""


def _between_double_stars(folders: Sequence[str]) -> list[str]:
    """The runs of plain segments; the first stands at the name's beginning, others behind a double star."""
    runs = [""]
    for folder in folders:
        if folder != "**":
            runs[-1] += f"(?>{_segment(folder)}/)"
        elif runs[-1] or len(runs) == 1:
            runs.append("")
    return runs


def _soonest(run: str) -> str:
    """A run of segments at the first folder where it fits."""
    return f"(?>{_FOLDER}*?{run})"


def _segment(pattern: str) -> str:
    if pattern == "**":
        return "[^/]*"
    chunks = [""]
    for match in _TOKEN.finditer(pattern):
        if match[0].startswith("*"):
            if len(match[0]) > 1:
                raise ValueError("** stands for whole segments: write **/")
            chunks.append("")
        else:
            chunks[-1] += _translated(match[0])
    first, *others = chunks
    if not others:
        return first
    return first + "".join(f"(?>[^/]*?{chunk})" for chunk in others[:-1]) + f"[^/]*{others[-1]}"


def _translated(word: str) -> str:
    """A part of a segment that has one length in characters."""
    if word == "?":
        return "[^/]"
    if word in ("[", "\\"):
        raise ValueError("a [ without its ]" if word == "[" else "a backslash at its end")
    if word.startswith("["):
        return _class(word[1:-1])
    return re.escape(word.removeprefix("\\") if len(word) > 1 else word)


def _class(inside: str) -> str:
    is_not = inside.startswith("!")
    members = "".join(_members(inside[is_not:]))
    if not members:
        raise ValueError("[] names no character")
    return f"[^/{members}]" if is_not else f"(?!/)[{members}]"


def _members(inside: str) -> Iterator[str]:
    for low, high, alone in _MEMBER.findall(inside):
        if low > high:
            raise ValueError(f"{low}-{high} is the wrong way round")
        yield re.escape(alone) if alone else f"{re.escape(low)}-{re.escape(high)}"


def _any_of(patterns: Sequence[bytes]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{expression(_text(pattern))})" for pattern in patterns), re.DOTALL)


def _text(name: bytes) -> str:
    """One character for each of the name's, and for each byte that belongs to none."""
    return name.decode("utf-8", "surrogateescape")


def _said(option: str, patterns: Sequence[bytes]) -> str:
    more = f" and {len(patterns) - _SAID} more" if len(patterns) > _SAID else ""
    return "".join(f" {option} {shown(pattern)}" for pattern in patterns[:_SAID]) + more
