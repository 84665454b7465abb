"""Files of an image that is not running: symbolic links are followed inside the image, and only so far."""

from __future__ import annotations

import re
import tarfile
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

MOST_LINKS: Final = 40
"""As many as Linux follows in one path (MAXSYMLINKS)."""

LONGEST_PATH: Final = 4095
LONGEST_NAME_BYTES: Final = 255

# No UTF-8 has them, and so no question to the engine.
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Kind(Enum):
    """What a path is."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"
    """A device, a socket or a pipe, which nothing here opens."""


@dataclass(frozen=True)
class Entry:
    """One path, a link not followed."""

    kind: Kind
    size_bytes: int = 0
    is_executable: bool = False
    target: str = ""
    """Of a link: absolute, or relative to the link's folder."""


class ImageFiles(Protocol):
    """Where the files come from. Paths are absolute, and only the last part of one may be a link."""

    def entry(self, path: str) -> Entry | None:
        """What is there, a link not followed; None for nothing."""
        ...

    def read(self, path: str, limit_bytes: int) -> bytes:
        """The first `limit_bytes` bytes of a regular file."""
        ...

    def header(self, path: str) -> tarfile.TarInfo | None:
        """Owner, mode and kind of what is there, a link not followed."""
        ...

    def names(self, path: str) -> tuple[str, ...]:
        """The names in a folder that is small; of a large one, some of them."""
        ...


class ImageTree:
    """An image's files as its own programs would see them."""

    def __init__(self, files: ImageFiles) -> None:
        self._files = files
        # Without it each path below /usr/lib would ask the engine for /usr and /usr/lib again.
        self._entries: dict[str, Entry | None] = {}

    def resolve(self, path: str) -> str | None:
        """The path without links in it; None if it leads to nothing, in circles or is no absolute path."""
        if not _is_possible(path):
            return None
        left, done, links = deque(path.split("/")), "", 0
        while left:
            part = left.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                done = done.rpartition("/")[0]
                continue
            entry = self._entry(f"{done}/{part}")
            if entry is None:
                return None
            if entry.kind is not Kind.LINK:
                if entry.kind is not Kind.FOLDER and any(left):
                    return None
                done = f"{done}/{part}"
                continue
            links += 1
            if links > MOST_LINKS or not _is_possible(f"/{entry.target}"):
                return None
            if entry.target.startswith("/"):
                done = ""
            left.extendleft(reversed(entry.target.split("/")))
        return done or "/"

    def find(self, path: str) -> tuple[str, Entry] | None:
        """The path resolved, and what is there."""
        resolved = self.resolve(path)
        entry = None if resolved is None else self._entry(resolved)
        return None if resolved is None or entry is None else (resolved, entry)

    def exists(self, path: str) -> bool:
        """Whether the path leads to something."""
        return self.find(path) is not None

    def is_program(self, path: str) -> bool:
        """Whether the path leads to a file that may be executed."""
        found = self.find(path)
        return found is not None and found[1].kind is Kind.FILE and found[1].is_executable

    def is_folder(self, path: str) -> bool:
        """Whether the path leads to a folder."""
        found = self.find(path)
        return found is not None and found[1].kind is Kind.FOLDER

    def read(self, path: str, limit_bytes: int) -> bytes:
        """The start of a file; empty where there is none."""
        found = self.find(path)
        if found is None or found[1].kind is not Kind.FILE:
            return b""
        return self._files.read(found[0], limit_bytes)

    def text(self, path: str, limit_bytes: int = 2**20) -> str:
        """The start of a file as text, whatever its bytes are."""
        return self.read(path, limit_bytes).decode("utf-8", "replace")

    def names(self, path: str) -> tuple[str, ...]:
        """The names in a small folder, sorted; empty where there is none."""
        found = self.find(path)
        if found is None or found[1].kind is not Kind.FOLDER:
            return ()
        return tuple(sorted(self._files.names(found[0])))

    def _entry(self, path: str) -> Entry | None:
        if path == "/":
            return Entry(Kind.FOLDER)
        if path not in self._entries:
            self._entries[path] = self._files.entry(path)
        return self._entries[path]


def _is_possible(path: str) -> bool:
    """Whether the image could have such a path; the engine answers others with an internal error."""
    if not path.startswith("/") or "\0" in path or len(path) > LONGEST_PATH or _SURROGATE.search(path):
        return False
    return all(len(part.encode()) <= LONGEST_NAME_BYTES for part in path.split("/"))
