"""--include and --exclude: which names below the prefix belong to the data set.

A pattern is matched against the name's UTF-8 bytes as listed, upper and lower case apart. ``*`` is any run
of bytes and ``?`` one character, neither of them a slash; ``**`` as a whole segment is any number of
segments, none too; ``[abc]``, ``[a-z]`` and ``[!a]`` are one ASCII character; a backslash takes the next
character as it is. A pattern without a slash is matched against the last segment, one with a slash
against the whole name, and one that ends in a slash stands for all below that folder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from azcp_runtime.contract import ListError
from azcp_runtime.source.listing import Listing, select
from azcp_runtime.source.names import shown

_ONE: Final = rb"(?>[\xc0-\xff][\x80-\xbf]*|[^/])"
"""One character of UTF-8 that is no slash; a byte that is no UTF-8 counts as one."""

_TOKEN: Final = re.compile(rb"\*+|\?|\[!?\]?[^\]]*\]|\\.|[^*?\[\\]+|.", re.DOTALL)


def parse_pattern(text: str) -> bytes:
    """The bytes of a pattern on the command line.

    Raises:
        ValueError: nothing can match it.
    """
    pattern = text.encode("utf-8", "surrogateescape")
    if not pattern:
        raise ValueError("GLOB is empty")
    if pattern.startswith(b"/"):
        raise ValueError(f"{text!r} begins with a slash: names are relative to SOURCE")
    try:
        re.compile(expression(pattern))
    except re.error as error:
        raise ValueError(f"{text!r} is no pattern: {error.msg}") from None
    return pattern


def expression(pattern: bytes) -> bytes:
    """The regular expression that matches the same whole names.

    Raises:
        re.error: a bracket is not closed, a backslash ends the pattern, or a ** is part of a segment.
    """
    if b"/" not in pattern:
        return rb"(?:.*/)?" + _segment(pattern)
    *folders, last = pattern.split(b"/")
    parts = [rb"(?:[^/]*/)*" if folder == b"**" else _segment(folder) + b"/" for folder in folders]
    parts.append(rb".+" if last in (b"", b"**") else _segment(last))
    return b"".join(parts)


def chosen(listing: Listing, include: Sequence[bytes], exclude: Sequence[bytes]) -> Listing:
    """The files that an include matches, or all without any, less those that an exclude matches.

    Markers of folders must be gone before: a name is known as one only beside the names below it.

    Raises:
        ListError: there are files, and none is left.
    """
    if not include and not exclude:
        return listing
    wanted, unwanted = _any_of(include or (b"**",)), _any_of(exclude)
    keep = [
        file
        for file, name in enumerate(listing.names)
        if wanted.fullmatch(name) and not (exclude and unwanted.fullmatch(name))
    ]
    if len(listing) and not keep:
        said = _said("--include", include) + _said("--exclude", exclude)
        raise ListError(
            f"none of {len(listing)} names is left by{said}",
            cause="patterns are matched against names below SOURCE",
            remedy="* stops at a slash, ** does not; quote patterns, or the shell replaces them",
        )
    return select(listing, keep)


def _segment(pattern: bytes) -> bytes:
    if pattern == b"**":
        return rb"[^/]*"
    return b"".join(_translated(match[0]) for match in _TOKEN.finditer(pattern))


def _translated(token: bytes) -> bytes:
    if token.startswith(b"*"):
        if len(token) > 1:
            raise re.error("** stands for whole segments: write **/")
        return rb"[^/]*"
    if token == b"?":
        return _ONE
    if token in (b"[", b"\\"):
        raise re.error("a [ without its ]" if token == b"[" else "a backslash at its end")
    if token.startswith(b"["):
        return _class(token[1:-1])
    return re.escape(token.removeprefix(b"\\") if len(token) > 1 else token)


def _class(inside: bytes) -> bytes:
    if not inside.isascii():
        raise re.error("[...] is for ASCII characters")
    is_not = inside.startswith(b"!")
    escaped = re.sub(rb"([\\^\[\]&~|])", rb"\\\1", inside[is_not:])
    return rb"(?!/)(?!" + b"[" + escaped + b"])" + _ONE if is_not else rb"(?!/)[" + escaped + b"]"


def _any_of(patterns: Sequence[bytes]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(b"(?:" + expression(pattern) + b")" for pattern in patterns), re.DOTALL)


def _said(option: str, patterns: Sequence[bytes]) -> str:
    return "".join(f" {option} {shown(pattern)}" for pattern in patterns)
