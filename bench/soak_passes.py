"""Run by soak.py under mpirun: passes in one world, one after the other, and what each leaves behind.

python bench/soak_passes.py SOURCE FOLDER SECONDS [OPTION ...]; rank R writes its figures to FOLDER/R.json.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import shutil
import sys
import time
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

from azcp_runtime.mpi.world import World
from azcp_runtime.options import parse_options
from azcp_runtime.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(source: str, folder: Path, seconds: float, options: Sequence[str]) -> None:
    """Passes until the time is over; all ranks make as many."""
    world = World(os.environ, 60.0, 60.0)
    first = world.seat.rank == 0
    ends_at = time.monotonic() + seconds
    rows: list[dict[str, int]] = []
    while world.reduce(array("Q", [first and time.monotonic() < ends_at]), "max")[0]:
        dest = folder / f"pass{len(rows)}"
        Run(parse_options([source, str(dest), "--no-progress", *options]), world, os.environ).distribute()
        rows.append(_left_behind())
        world.barrier()
        if first:
            shutil.rmtree(dest)
    (folder / f"{world.seat.rank}.json").write_text(json.dumps(rows))
    world.leave()


def _left_behind() -> dict[str, int]:
    """What this process holds now; a communicator's Fortran index is the lowest that is free."""
    from mpi4py import MPI

    gc.collect()
    probe = MPI.COMM_WORLD.Dup()
    index = probe.py2f()
    probe.Free()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return {
        "communicators": index,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "resident_kib": pages * resource.getpagesize() // 1024,
    }


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
