"""Writes a folder of generated files again and again, and never over what somebody else wrote or changed."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from azcp_runtime.contract import UsageError

RECORD: Final = ".azcp-files"
"""Digest and path of each file that was written, as sha256sum prints them."""

_SHOWN: Final = 5

Record = frozenset[tuple[str, str]]
"""Path and digest; while a run is under way the old digest of a path and the coming one."""


def write_folder(folder: Path, files: Mapping[str, str], is_executable: Callable[[str], bool]) -> None:
    """Make the folder hold these files; those of an earlier time that are no more among them are removed.

    Args:
        folder: made if it is not there.
        files: texts by relative path.
        is_executable: whether a path is to be run.

    Raises:
        UsageError: a file there is not as it was generated, or the folder cannot be written.
    """
    try:
        known = _recorded(folder)
        _expect_ours(folder, files, known)
        # First the record, of old and coming files: a run that is ended in between can be repeated.
        coming = frozenset((path, _digest(text.encode())) for path, text in files.items())
        _write(folder / RECORD, _lines(known | coming), 0o644)
        for path, text in files.items():
            _write(folder / path, text, 0o755 if is_executable(path) else 0o644)
        for path in {path for path, _ in known} - files.keys():
            (folder / path).unlink(missing_ok=True)
        _write(folder / RECORD, _lines(coming), 0o644)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{folder} cannot be written: {error}") from error


def _recorded(folder: Path) -> Record:
    record = folder / RECORD
    if not record.exists():
        return frozenset()
    lines = [line.partition("  ") for line in record.read_text(encoding="utf-8").splitlines()]
    # A path that leads out of the folder is nothing that was written here.
    return frozenset((path, digest) for digest, _, path in lines if _is_inside(path))


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path)
    return bool(path) and not parts.is_absolute() and ".." not in parts.parts


def _expect_ours(folder: Path, files: Mapping[str, str], known: Record) -> None:
    """Raise where a file would be lost."""
    paths = sorted(files.keys() | {path for path, _ in known})
    foreign = [path for path in paths if _is_foreign(folder / path, path, files, known)]
    if foreign:
        more = f" and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
        raise UsageError(
            f"{folder} has files that azcp-kit did not write, or that were changed: "
            f"{', '.join(foreign[:_SHOWN])}{more}",
            remedy="choose another folder, or move them away",
        )


def _is_foreign(file: Path, path: str, files: Mapping[str, str], known: Record) -> bool:
    if not file.exists() and not file.is_symlink():
        return False
    if file.is_symlink() or not file.is_file():
        return True
    content = file.read_bytes()
    return (path, _digest(content)) not in known and content != files.get(path, "").encode()


def _write(file: Path, text: str, mode: int) -> None:
    """At once, so that no reader sees half a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".", delete=False) as temporary:
        temporary.write(text.encode())
    try:
        Path(temporary.name).chmod(mode)
        os.replace(temporary.name, file)
    except OSError:
        Path(temporary.name).unlink(missing_ok=True)
        raise


def _lines(record: Record) -> str:
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(record))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
