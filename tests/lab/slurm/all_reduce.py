"""Stands in for all_reduce_perf on a node: each rank notes what it was given, rank 0 prints the table."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.lab.waiting import wait_until

_DEADLINE_S: Final = 60.0
_PREFIXES: Final = ("CUDA_", "NCCL_", "OMPI_", "PMIX_", "SLURM_")
_WAY: Final = "   time   algbw   busbw #wrong"
_CHANNEL: Final = "node1:1:2 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA"
_GBPS: Final = 186.6


def program(path: Path, records: Path) -> None:
    """Make the program at `path`; its ranks write into the folder `records`."""
    repository = Path(__file__).parents[3]
    records.mkdir()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\nsys.path.insert(0, {str(repository)!r})\n"
        f"from tests.lab.slurm.all_reduce import main\nmain(Path({str(records)!r}), sys.argv)\n",
        encoding="utf-8",
    )
    path.chmod(0o755)


def main(records: Path, argv: Sequence[str]) -> None:
    """What a rank does."""
    rank, ranks = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    env = {name: value for name, value in os.environ.items() if name.startswith(_PREFIXES)}
    part = records / f"{rank}.part"
    part.write_text(
        json.dumps({"node": os.uname().nodename, "argv": list(argv), "env": env}), encoding="utf-8"
    )
    part.rename(records / f"{rank}.json")
    if rank == 0:
        paths = [records / f"{each}.json" for each in range(ranks)]
        wait_until(lambda: all(path.exists() for path in paths), _DEADLINE_S, "all ranks are there")
        _table([json.loads(path.read_text(encoding="utf-8"))["node"] for path in paths], argv)


def _table(nodes: Sequence[str], argv: Sequence[str]) -> None:
    options = dict(zip(argv[1::2], argv[2::2], strict=True))
    size_bytes, last = int(options["-b"]), int(options["-e"])
    print(
        f"# nThread 1 nGpus 1 minBytes {size_bytes} maxBytes {last} step: 2(factor) warmup iters: 5"
        f" iters: {options['-n']} agg iters: 1 validation: {options['-c']} graph: 0\n#\n# Using devices"
    )
    for rank, node in enumerate(nodes):
        print(f"#  Rank {rank:2} Group  0 Pid {rank:6} on {node:>10} device {rank % 8:2} [0x00] a stand-in")
    print(f"{_CHANNEL}\nNCCL version 2.19.3+cuda12.2")
    print(f"#\n#       size         count      type   redop    root  {_WAY}  {_WAY}")
    while size_bytes <= last:
        way = f"{size_bytes / _GBPS / 1e3:9.2f}  {_GBPS:6.2f}  {_GBPS:6.2f}    N/A"
        print(f"{size_bytes:12}  {size_bytes // 4:12}     float     sum      -1{way}{way}")
        size_bytes *= 2
    print(f"# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {_GBPS} \n#\n")
