"""The floor for small files: each rank writes and renames all of them from memory; no source, no broadcast.

mpirun -n N python bench/files_alone.py SOURCE DEST: names and sizes are those of SOURCE, rank i writes to
DEST/node{i}.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from mpi4py import MPI


def main(source: Path, dest: Path) -> None:
    """Write every file; rank 0 prints the seconds of the slowest rank as JSON."""
    world = MPI.COMM_WORLD
    files = [(p.relative_to(source), p.stat().st_size) for p in sorted(source.rglob("*")) if p.is_file()]
    node = dest / f"node{world.rank}"
    content = os.urandom(max(size_bytes for _, size_bytes in files))
    world.Barrier()
    started_s = time.monotonic()
    for folder in sorted({name.parent for name, _ in files}):
        (node / folder).mkdir(parents=True, exist_ok=True)
    for target, size_bytes in [(f"{node}/{name}", size_bytes) for name, size_bytes in files]:
        partial = f"{target}.partial"
        with open(partial, "wb", buffering=0) as file:
            file.write(content[:size_bytes])
        os.rename(partial, target)
    seconds = world.reduce(time.monotonic() - started_s, op=MPI.MAX)
    if world.rank == 0:
        print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
