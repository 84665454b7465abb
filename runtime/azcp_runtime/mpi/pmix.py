"""Which PMIx the step's server speaks, and which our MPI: told before MPI starts, which may hang or die."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_CALLS: Final = ("PMIx_Get_version", "OPAL_MCA_PMIX3X_PMIx_Get_version")
"""Open MPI that is built with its own PMIx may have given its names a prefix."""

_LIBRARIES: Final = (
    *("libopen-pal.so.40", "openmpi/mca_pmix_pmix3x.so", "libpmix.so.2", "libopen-pal.so.80"),
    "libmpi.so.40",
)
"""Beside libmpi, which holds it: Open MPI's own, the plugin of one, or the library of its own."""

_UNKNOWN: Final = "of a version that it does not tell"


def pmix_line(env: Mapping[str, str], folder: Path) -> str:
    """What a person needs to see where both do not go together.

    Args:
        env: of a task of srun.
        folder: where libmpi lies.
    """
    return (
        f"[pmix] {_server(env)}; the Open MPI of this program speaks PMIx {own_version(folder) or _UNKNOWN}"
    )


def mpi_folder(env: Mapping[str, str], prefix: str) -> Path:
    """Where libmpi lies that is going to be loaded.

    Args:
        env: may name it.
        prefix: of the interpreter, beside which it is otherwise.
    """
    named = env.get("MPI4PY_LIBMPI", "")
    return Path(named).parent if named.startswith("/") else Path(prefix, "lib")


def own_version(folder: Path) -> str | None:
    """The version that the libraries themselves tell; None where they are absent or do not."""
    return next(_versions(folder), None)


def _versions(folder: Path) -> Iterator[str]:
    for name in _LIBRARIES:
        if not (folder / name).exists():
            continue
        try:
            library = ctypes.CDLL(str(folder / name))
        except OSError:  # one that it stands on is missing: MPI will say so itself
            continue
        for call in _CALLS:
            if (function := getattr(library, call, None)) is None:
                continue
            function.restype = ctypes.c_char_p
            told = function()
            # Some put words around the number.
            yield from (
                word.strip(",") for word in told.decode(errors="replace").split() if word[:1].isdigit()
            )


def _server(env: Mapping[str, str]) -> str:
    """The side of Slurm, as it has told this task."""
    if "PMIX_RANK" not in env:
        return "Slurm has started this task without PMIx"
    told = f"Slurm's plugin speaks PMIx {env.get('PMIX_VERSION') or _UNKNOWN}"
    folder = env.get("PMIX_SERVER_TMPDIR", "")
    is_hidden = folder and not Path(folder).is_dir()
    return f"{told}, whose folder {folder} is not to be seen in here" if is_hidden else told
