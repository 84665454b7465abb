"""What of a batch script a rehearsal cannot show: listed, and never made to look as if."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from azcp_kit.rehearse.fabric import REQUIRE_RDMA, WHY_WITHOUT, text_without_rdma
from azcp_kit.rehearse.slurm.script import BatchScript
from azcp_kit.shown import shown

_LONGEST: Final = 1000
_GPUS: Final = ("--gpus", "--gpus-per-node", "--gpus-per-task", "--gres")
_SHARES: Final = ("--mem", "--mem-per-cpu", "--mem-per-gpu", "--cpus-per-task", "--exclusive")
_ADMISSION: Final = ("--partition", "--account", "--qos", "--constraint", "--reservation", "--dependency")
_ENDS: Final = ("--time", "--signal", "--requeue", "--no-requeue")


def unshown_anywhere(script: BatchScript) -> tuple[str, ...]:
    """Wherever it is rehearsed."""
    return tuple(shown(line, _LONGEST) for line in _anywhere(script))


def unshown_on_containers(script: BatchScript) -> tuple[str, ...]:
    """Where stand-ins take the place of Slurm's commands."""
    return tuple(shown(line, _LONGEST) for line in (*_anywhere(script), *_on_containers(script)))


def _anywhere(script: BatchScript) -> Iterator[str]:
    if script.sources:
        yield "the account: Azurite is in its place, and lets the nodes in with a signature of its own"
    yield "how fast the account, the fabric and the disks of the real nodes are"


def _on_containers(script: BatchScript) -> Iterator[str]:
    for options, kind in (
        (_GPUS, "there are no GPUs here"),
        (_SHARES, "nothing is bound or limited here"),
        (_ADMISSION, "whether and when the job is admitted"),
        (_ENDS, "no job is ended by its time limit, and none is queued again"),
    ):
        if named := [option for option in options if script.has(option)]:
            yield f"{', '.join(named)}: {kind}"
    if script.mpi:
        yield f"--mpi={', --mpi='.join(script.mpi)}: srun has no such plugin here, and says so"
    if script.containers:
        yield f"{', '.join(script.containers)}: the image of --image is entered, without its entry point"
    if text_without_rdma(script.text) != script.text:
        yield f"{REQUIRE_RDMA}: {WHY_WITHOUT}"
    yield "the fabric: the nodes are containers on one bridge network, and their user is root"
