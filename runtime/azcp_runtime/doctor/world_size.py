"""Whether the ranks found each other: N worlds of one rank each download everything N times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from azcp_runtime.contract import AzcpError, UsageError
from azcp_runtime.doctor.check import Check, fail, ok
from azcp_runtime.mpi.launch import check_world_size, launched_by_mpi
from azcp_runtime.mpi.ranks import Seat

_NAME: Final = "world"


def check_world(seat: Seat, expected: int | None, env: Mapping[str, str]) -> Check:
    """Whether the world is as large as was promised.

    Args:
        seat: this rank's place.
        expected: --expect-ranks.
        env: the environment.
    """
    # Within an allocation, but in no step of it, nobody has promised anything.
    alone = not launched_by_mpi(env) and "SLURM_STEP_NUM_TASKS" not in env
    try:
        check_world_size(seat.size, expected, env, alone=alone)
    except UsageError as error:
        return refused_world(error)
    return ok(_NAME, f"{_counted(seat.size, 'rank')} on {_counted(seat.nodes, 'node')}")


def refused_world(error: AzcpError) -> Check:
    """What MPI's door says of a world that cannot be."""
    return fail(_NAME, f"{error.what} ({error.cause})" if error.cause else error.what, error.remedy)


def broken_world(what: str) -> Check:
    """MPI did not come up on this node."""
    return fail(
        _NAME,
        what,
        "its own messages and the checks below say why; AZCP_ENV_OMPI_MCA_pml=ob1 brings it up over TCP",
    )


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' if count > 1 else ''}"
