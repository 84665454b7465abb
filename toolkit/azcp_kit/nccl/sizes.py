"""What each VM size needs for the all-reduce test, from sizes.toml: read once, when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

SIZES: Final = Path(__file__).with_name("sizes.toml")
"""The file, with the source of each fact."""


@dataclass(frozen=True, slots=True)
class NcclSize:
    """The test on one VM size.

    Args:
        library: NCCL or RCCL.
        binary: all_reduce_perf on Azure's node images, and in their containers.
        modules: that it needs on a node image.
        gpu_memory_gib: of one GPU.
        env: variables that the published runs set.
    """

    library: str
    binary: str
    modules: tuple[str, ...]
    gpu_memory_gib: int
    env: Mapping[str, str]


@cache
def load_sizes() -> Mapping[str, NcclSize]:
    """Every size by the name that its facts have."""
    import tomllib

    tables = tomllib.loads(SIZES.read_text(encoding="utf-8"))
    return MappingProxyType(
        {
            name: NcclSize(
                library=table["library"],
                binary=table["binary"],
                modules=tuple(table["modules"]),
                gpu_memory_gib=table["gpu-memory-gib"],
                env=MappingProxyType(table["env"]),
            )
            for name, table in tables.items()
        }
    )
