"""mpi-operator: a hostfile on the launcher, named in the environment that it appends to the container's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import UsageError
from azcp_runtime.launch.hosts import Found, read_hostfile

MOUNT: Final = Path("/etc/mpi/hostfile")
VARIABLES: Final = (
    "OMPI_MCA_orte_default_hostfile",
    "PRTE_MCA_prte_default_hostfile",
    "I_MPI_HYDRA_HOST_FILE",
    "HYDRA_HOST_FILE",
)
"""Of Open MPI 4 and 5, Intel MPI and MPICH, for each of which the operator names the same file."""


@dataclass(frozen=True, slots=True)
class Operator:
    """The hostfile of an MPIJob's launcher; it may list the launcher itself.

    Args:
        env: the container's environment.
        mount: where the operator puts the file.
    """

    env: Mapping[str, str]
    mount: Path = MOUNT

    @property
    def sought(self) -> str:
        """The file and the variables."""
        return f"mpi-operator's hostfile ({self.mount}, or what {VARIABLES[0]} names)"

    def find(self) -> Found | None:
        """What the first file says that is there.

        Raises:
            UsageError: the operator's own file cannot be read, or names no host.
        """
        named = (self.env.get(name, "") for name in VARIABLES)
        for path in (*(Path(text) for text in named if text), self.mount):
            if not path.is_file():
                continue
            try:
                return Found(f"mpi-operator's hostfile {path}", read_hostfile(path))
            except UsageError:
                # An image may set the variable itself, to a default file that has nothing but comments.
                if path == self.mount:
                    raise
        return None
