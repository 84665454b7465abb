"""What a blob's name becomes on disk, and which names are refused.

Blob names are hostile input: any sequence of Unicode characters up to 1,024 long. They are
handled as UTF-8 bytes, exactly as listed, and never decoded a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from azcp_runtime.contract import PARTIAL_PREFIX, STATE_DIR, ListError

LONGEST_SEGMENT_BYTES: Final = 255
"""NAME_MAX of ext4, xfs and tmpfs."""

LONGEST_PATH_BYTES: Final = 4096 - 256
"""PATH_MAX of Linux, less room for the destination itself."""

_SHOWN: Final = 50
_STATE: Final = STATE_DIR.encode()
_PARTIAL: Final = PARTIAL_PREFIX.encode()


def shown(name: bytes) -> str:
    """A name for messages: readable, with control characters escaped so that it cannot drive a terminal."""
    text = name.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def objection(name: bytes) -> str:
    """Why no file can safely have this name; empty where one can."""
    segments = name.split(b"/")
    rules = (
        (not name, "is empty"),
        (b"\0" in name, "holds a NUL byte"),
        (name.startswith(b"/"), "is absolute"),
        (name.endswith(b"/"), "is the name of a folder but has bytes"),
        (len(name) > LONGEST_PATH_BYTES, f"is longer than {LONGEST_PATH_BYTES} bytes"),
        (b".." in segments or b"." in segments, "has a . or .. segment"),
        (
            len(name) > LONGEST_SEGMENT_BYTES and max(map(len, segments)) > LONGEST_SEGMENT_BYTES,
            f"has a segment of more than {LONGEST_SEGMENT_BYTES} bytes",
        ),
        (
            segments[0] == _STATE or any(segment.startswith(_PARTIAL) for segment in segments),
            "is reserved for azcp-distribute's own files",
        ),
    )
    return next((why for broken, why in rules if broken), "")


def local_path(name: bytes) -> bytes:
    """The path below the destination: the name, with repeated slashes as the kernel reads them."""
    return b"/".join(segment for segment in name.split(b"/") if segment) if b"//" in name else name


def refuse_unsafe(names: Sequence[bytes]) -> None:
    """Check every name before a byte is read.

    Raises:
        ListError: names that no file can have, that become one file, or that need a folder
            where another has a file; all of them are listed.
    """
    problems = [f"{shown(name)} {why}" for name in names if (why := objection(name))]
    problems += _collisions(names)
    if problems:
        more = f" and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise ListError(
            f"{len(problems)} names cannot be files: " + "; ".join(problems[:_SHOWN]) + more,
            remedy="rename or delete these blobs, or distribute another prefix",
        )


def _collisions(names: Iterable[bytes]) -> list[str]:
    by_path: dict[bytes, bytes] = {}
    problems = []
    for name in names:
        path = local_path(name)
        if path in by_path:
            problems.append(f"{shown(by_path[path])} and {shown(name)} become one file")
        by_path[path] = name
    for path, name in by_path.items():
        folder = _first_file_above(path, by_path)
        if folder is not None:
            problems.append(f"{shown(by_path[folder])} is a file where {shown(name)} needs a folder")
    return problems


def _first_file_above(path: bytes, files: dict[bytes, bytes]) -> bytes | None:
    cut = path.find(b"/")
    while cut > 0:
        if path[:cut] in files:
            return path[:cut]
        cut = path.find(b"/", cut + 1)
    return None
