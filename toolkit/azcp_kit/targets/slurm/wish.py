"""What the command line says of a script for Slurm, beside the job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from azcp_runtime.contract import UsageError


class Container(StrEnum):
    """What the steps run in."""

    PYXIS = "pyxis"
    APPTAINER = "apptainer"
    ENROOT = "enroot"
    NONE = "none"


class Launch(StrEnum):
    """How phase 1 becomes one MPI world."""

    AUTO = "auto"
    """By azcp-launch: it starts Open MPI over ssh inside of the step, and needs nothing of the site."""

    PMIX = "pmix"
    """By srun --mpi=pmix where the site has it, else as AUTO does."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One script.

    Args:
        container: what the steps run in.
        launch: how phase 1 becomes one MPI world.
    """

    container: Container
    launch: Launch = Launch.AUTO

    @property
    def suffix(self) -> str:
        """Of the image's file."""
        return ".sif" if self.container is Container.APPTAINER else ".sqsh"


def read_wish(container: str, launch: str) -> Wish:
    """The options --container and --launch.

    Raises:
        UsageError: one of them is missing, or none that there is.
    """
    wrong = []
    if container not in list(Container):
        wrong.append(f"--container {container or 'is missing, and'} is none of {', '.join(Container)}")
    if launch and launch not in list(Launch):
        wrong.append(f"--launch {launch} is none of {', '.join(Launch)}")
    if wrong:
        raise UsageError("; ".join(wrong))
    return Wish(Container(container), Launch(launch or Launch.AUTO))
