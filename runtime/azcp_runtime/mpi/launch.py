"""Whether MPI is wanted, and whether the world has the size that the launcher promised.

srun without a matching PMIx, or a libmpi other than mpirun's, starts N worlds of one rank each:
every node downloads everything and each run succeeds. That is found before a byte is read.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Final

from azcp_runtime.contract import UsageError

STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What asks a rank to end: a user, a scheduler, and the signals that sbatch --signal is given most often."""

_MPI_SIGNS: Final = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE")


def launched_by_mpi(env: Mapping[str, str]) -> bool:
    """Whether a launcher started this process as a rank."""
    return any(name in env for name in _MPI_SIGNS)


def promised_ranks(env: Mapping[str, str]) -> tuple[int, str] | None:
    """How many ranks the launcher started, and the variable that says so.

    mpirun's own variable comes first: it may start fewer ranks than a Slurm allocation has tasks.
    """
    for name in ("OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "PMI_SIZE"):
        if env.get(name, "").isdigit():
            return int(env[name]), name
    return None


def check_world_size(size: int, expected: int | None, env: Mapping[str, str], *, alone: bool) -> None:
    """Refuse a world of another size than expected; ``alone`` is the wish for one rank, whoever started it.

    Raises:
        UsageError: --expect-ranks or the launcher's variable says another number.
    """
    promises = [(expected, "--expect-ranks")] if expected else []
    promised = None if alone else promised_ranks(env)
    for count, source in [*promises, *([promised] if promised else [])]:
        if count != size:
            raise UsageError(
                f"the MPI world has {size} ranks, {source} says {count}",
                cause="no launcher, or one whose PMI this MPI library does not speak",
                remedy="start with the mpirun that came with it, or srun --mpi=pmix where Slurm has it; "
                "--no-broadcast is meant for one rank alone",
            )


def is_first(env: Mapping[str, str]) -> bool:
    """Whether this process is its launcher's first, which alone prints what all of them find."""
    ranks = (env.get(name) for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"))
    return next((rank for rank in ranks if rank is not None), "0") == "0"
