"""A directory as the source: its listing, and reads from its files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from azcp_runtime.contract import PARTIAL_PREFIX, STATE_DIR, DownloadError, ListError
from azcp_runtime.source.listing import Entry
from azcp_runtime.source.names import shown


def list_directory(root: Path) -> Iterator[Entry]:
    """Every regular file below root; links to files count as files, links to folders are refused.

    Raises:
        ListError: a folder cannot be read, or an entry is neither file nor folder.
    """
    base = os.fsencode(root)
    # A stack of folders, not recursion: a path may be deeper than Python's own stack.
    folders = [b""]
    while folders:
        below = folders.pop()
        for child in _children(os.path.join(base, below)):
            name = below + child.name
            if name == STATE_DIR.encode():
                continue
            if child.is_dir(follow_symlinks=False):
                folders.append(name + b"/")
            elif not child.name.startswith(PARTIAL_PREFIX.encode()):
                yield _file_entry(child, name)


def _children(folder: bytes) -> list[os.DirEntry[bytes]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError as error:
        raise ListError(f"cannot list {shown(folder)}: {error.strerror}") from error


def _file_entry(child: os.DirEntry[bytes], name: bytes) -> Entry:
    try:
        status = child.stat()
    except OSError as error:
        raise ListError(f"cannot read {shown(name)}: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a link to a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise ListError(f"{shown(name)} is {kind}", remedy="remove it from the source directory")
    return Entry(name, status.st_size, etag=version_of(status), modified=int(status.st_mtime))


def pinned_files(root: Path, entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries of a list as the files are now, so that every rank reads one version.

    Raises:
        ListError: a file is gone, or its size differs from the list's.
    """
    for entry in entries:
        try:
            status = os.stat(os.path.join(os.fsencode(root), entry.name))
        except (OSError, ValueError) as error:
            raise ListError(f"cannot read {shown(entry.name)}: {error}") from error
        if not stat.S_ISREG(status.st_mode) or status.st_size != entry.size:
            raise ListError(f"{shown(entry.name)} has {status.st_size} bytes, the list says {entry.size}")
        yield Entry(entry.name, entry.size, version_of(status), int(status.st_mtime))


def version_of(status: os.stat_result) -> str:
    """What an ETag is for a blob: it changes when the file's content does."""
    return f'"{status.st_mtime_ns:x}-{status.st_size:x}"'


def read_file(path: bytes, name: bytes, version: str, offset: int, into: memoryview) -> None:
    """Fill ``into`` from ``offset`` of a file; version is checked where it is not empty.

    Raises:
        DownloadError: the file is gone, shorter than listed, or has changed since.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise DownloadError(
            f"cannot open {shown(path)}: {error.strerror}",
            remedy="the source directory must be readable on every downloading node; "
            "--download-ranks 1 reads it on one",
        ) from error
    try:
        _check_version(descriptor, name, version)
        _read_exactly(descriptor, name, offset, into)
        _check_version(descriptor, name, version)
    finally:
        os.close(descriptor)


def _check_version(descriptor: int, name: bytes, version: str) -> None:
    """Before a read and after it: a file that is rewritten meanwhile would give bytes of both."""
    if version and version_of(os.fstat(descriptor)) != version:
        raise DownloadError(f"{shown(name)} changed while it was distributed", remedy="run again")


def _read_exactly(descriptor: int, name: bytes, offset: int, into: memoryview) -> None:
    done = 0
    while done < len(into):
        try:
            count = os.preadv(descriptor, [into[done:]], offset + done)
        except OSError as error:
            raise DownloadError(f"cannot read {shown(name)}: {error.strerror}") from error
        if count == 0:
            raise DownloadError(f"{shown(name)} is shorter than listed", remedy="run again")
        done += count
