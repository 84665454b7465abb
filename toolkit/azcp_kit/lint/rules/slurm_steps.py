"""Each srun: how its ranks find each other, how many CPUs they get."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.sbatch import Batch, Step
from azcp_kit.lint.settings import CONTAINER_RUNNERS, MPIRUN, is_set

CPUS_NOT_RESTATED: Final = Rule(
    "S201-cpus-not-restated",
    Severity.WARNING,
    why="since Slurm 22.05 srun does not take --cpus-per-task from sbatch: the step gets one CPU a task",
    fix="give srun --cpus-per-task too, or export SRUN_CPUS_PER_TASK",
)
WRONG_MPI: Final = Rule(
    "S202-ranks-do-not-meet",
    Severity.ERROR,
    why="Open MPI needs PMIx from srun (Open MPI 5 has no PMI2 at all); without it every task is rank 0 of 1,"
    " downloads everything, and reports success",
    fix="use --mpi=pmix where Slurm has it (`srun --mpi=list` on a compute node), or azcp-launch,"
    " which needs none",
)
PMIX_OF_TWO: Final = Rule(
    "S203-pmix-of-host-and-image",
    Severity.WARNING,
    why="the host's PMIx must be there on the compute nodes and fit the image's: with another major version"
    " the step hangs or cannot decode what it gets",
    fix="let azcp-launch start the ranks, which uses neither; or compare `srun --mpi=list` on a compute node"
    " with the image's PMIx",
)
NOT_ONE_TASK: Final = Rule(
    "S204-not-one-task-per-node",
    Severity.ERROR,
    why="azcp-cluster aborts unless each node has exactly one rank",
    fix="use --ntasks-per-node=1",
)
SLURM_VISIBLE: Final = Rule(
    "S205-mpirun-sees-slurm",
    Severity.WARNING,
    why="mpirun finds SLURM_ variables, tries to start its daemons with srun, which is not in the container,"
    " and dies with little said",
    fix="use azcp-mpirun or azcp-launch, or unset SLURM_ variables for it and add"
    " -mca plm rsh -mca ras ^slurm",
)

_OTHER_LAUNCHER: Final = ("OMPI_MCA_plm", "OMPI_MCA_ras", "OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm")
_KIT_LAUNCHERS: Final = ("azcp-launch", "azcp-mpirun")


def cpus(batch: Batch) -> Iterator[Finding]:
    """CPUs per task of the job, restated for the step."""
    asked = batch.directive("--cpus-per-task")
    if not asked or is_set(batch.setup.settings, "SRUN_CPUS_PER_TASK"):
        return
    for step in batch.steps:
        own = _own_option(step, "-c", "--cpus-per-task", "--exact", "--cpu-bind", "--cpus-per-gpu")
        if own is None:
            yield CPUS_NOT_RESTATED.at(step.line, f"srun without --cpus-per-task={asked.value}")


def _own_option(step: Step, *names: str) -> str | None:
    """The value of one of srun's own options, which end at its first argument that is none."""
    place = step.command.index_of("srun") or 0
    words = step.command.texts[place + 1 :]
    for at, word in enumerate(words):
        name, sign, value = word.partition("=")
        short = name[:2] if name[:1] == "-" and name[:2] != "--" else ""
        if name in names:
            return value if sign else (words[at + 1] if at + 1 < len(words) else "")
        if short in names and short:
            return name[2:]
        if word in {"bash", "sh"} or word.endswith(("/bash", "/sh")):
            break
    return None


def mpi_type(batch: Batch) -> Iterator[Finding]:
    """How srun lets the ranks of the distributor meet."""
    has_type = is_set(batch.setup.settings, "SLURM_MPI_TYPE")
    for step in batch.steps:
        if not step.runs("azcp-cluster", "azcp-distribute") or step.runs(*_KIT_LAUNCHERS, *MPIRUN):
            continue
        mpi = _own_option(step, "--mpi")
        if mpi is None and has_type:
            continue
        if mpi is None or not mpi.startswith(("pmix", "$")):
            yield WRONG_MPI.at(step.line, f"srun with {f'--mpi={mpi}' if mpi else 'no --mpi'} for MPI ranks")
        elif step.container_image or step.runs(*CONTAINER_RUNNERS):
            yield PMIX_OF_TWO.at(step.line, f"srun with --mpi={mpi} for ranks in a container")


def one_task(batch: Batch) -> Iterator[Finding]:
    """azcp-cluster's own condition."""
    directive = batch.directive("--ntasks-per-node")
    for step in batch.steps:
        own = _own_option(step, "--ntasks-per-node")
        tasks = own or (directive.value if directive else "")
        if step.runs("azcp-cluster") and tasks.isdecimal() and tasks != "1":
            yield NOT_ONE_TASK.at(step.line, f"{named(tasks)} tasks per node run azcp-cluster")


def mpirun_in_container(batch: Batch) -> Iterator[Finding]:
    """Another mpirun than the kit's, inside a container of a job."""
    if is_set(batch.setup.settings, *_OTHER_LAUNCHER) or "unset SLURM_" in batch.script.text:
        return
    for command in batch.script.commands:
        outer = command.within or command
        in_container = outer.option("--container-image") or outer.runs(*CONTAINER_RUNNERS)
        unsets = any("SLURM_" in text for text in command.texts)
        if command.runs(*MPIRUN) and in_container and not unsets:
            yield SLURM_VISIBLE.at(command.line, "mpirun in a container sees the job's SLURM_ variables")


BATCH_RULES: Final = (cpus, mpi_type, one_task, mpirun_in_container)
