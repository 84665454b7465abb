"""The options of azcp-distribute by name, and what --rails takes: what the toolkit may write."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

DISTRIBUTE_OPTIONS: Final[Mapping[str, bool]] = MappingProxyType(
    {
        "--allow-tcp": False,
        "--auth": True,
        "--bcast-chunk": True,
        "--bcast-pipeline": True,
        "--bcast-tune": True,
        "--bcast-writers": True,
        "--block-size": True,
        "--compare": True,
        "--concurrency": True,
        "--download-ranks": True,
        "--dry-run": False,
        "--exclude": True,
        "--expect-ranks": True,
        "--file-shards": True,
        "--filelist": True,
        "--help": False,
        "--include": True,
        "--max-bandwidth": True,
        "--max-retries": True,
        "--memory": True,
        "--no-bcast-direct": False,
        "--no-broadcast": False,
        "--no-progress": False,
        "--parallel-files": True,
        "--rail-cpus": True,
        "--rail-devices": True,
        "--rail-gid-index": True,
        "--rails": True,
        "--report": True,
        "--require-rdma": False,
        "--retry-time": True,
        "--sas-file": True,
        "--save-filelist": True,
        "--shard-size": True,
        "--shardlist": True,
        "--skip-archived": False,
        "--stage": True,
        "--stall-timeout": True,
        "--verify": False,
        "--version": False,
    }
)
"""Whether each takes a value."""

AUTO: Final = "auto"
"""--rails auto: one rank per HCA."""

MOST_RAILS: Final = 64
Rails = int | Literal["auto"]
