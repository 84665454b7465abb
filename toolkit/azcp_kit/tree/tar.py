"""A tree as a tar, whose names begin with its folder: into a file as a whole, or on to another program."""

from __future__ import annotations

import os
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PreflightError, UsageError
from azcp_runtime.contract.image import MANIFEST, PREFIX

from azcp_kit.shown import shown
from azcp_kit.tree.whole import whole

_MANIFEST: Final = str(Path(MANIFEST).relative_to(Path(PREFIX).parent))
_MODE: Final = 0o644


def put_tar(chunks: Iterator[bytes], file: Path) -> None:
    """Write the file, which is there only once it is whole.

    Raises:
        UsageError: it cannot be written, or has come to be meanwhile.
        PreflightError: the tar ends too early, or is none of a tree.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.") as part:
            for chunk in whole(chunks):
                part.write(chunk)
            part.flush()
            os.fsync(part.fileno())
            _expect_whole(Path(part.name))
            Path(part.name).chmod(_MODE)
            # Unlike a rename it replaces nothing.
            os.link(part.name, file)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror or error}") from error


def send_tar(chunks: Iterator[bytes]) -> None:
    """Write it to standard output.

    Raises:
        UsageError: whoever reads has gone.
    """
    try:
        for chunk in whole(chunks):
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise UsageError(f"standard output cannot be written: {error.strerror}") from error


def _expect_whole(file: Path) -> None:
    try:
        with tarfile.open(file) as tar:
            names = tar.getnames()
    except tarfile.TarError as error:
        raise PreflightError(f"the image's {PREFIX} came damaged", cause=shown(str(error))) from error
    if _MANIFEST not in names:
        raise PreflightError(f"the image's {PREFIX} came without its manifest", remedy="build it again")
