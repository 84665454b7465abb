"""What Open MPI is told before it starts, unless the user has told it something else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

_PREFIX: Final = "OMPI_MCA_"
_FILES: Final = (f"{_PREFIX}mca_base_param_files", f"{_PREFIX}mca_param_files")
_NAME: Final = re.compile(r"^\s*(\w+)\s*=", re.MULTILINE)

DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Every owner sends at once, so the linear algorithm uses all links; trees only add hops.
        "coll_libnbc_ibcast_algorithm": "1",
        # Two ranks on one core must not starve each other, and threads of ours share it.
        "mpi_yield_when_idle": "1",
        # Without "put", whose requests stand in line behind the data that goes the other way. Open MPI 4.1.8,
        # 2 CPUs, links of 400 Mb/s: 1.06 x the bound on 2 nodes, was 1.77, and 1.13 x on 4, was 1.50. Where
        # CPUs are the bound, on loopback, larger fragments make up for copies: 0.99 x the time and 0.98 x the
        # CPU seconds on 2 nodes, 0.91 x and 0.94 x on 4.
        "btl_tcp_flags": "send,inplace,need-ack,need-csum,hetero-rdma",
        "btl_tcp_max_send_size": "524288",
    }
)
"""Those of btl are read by ob1 over TCP alone: neither UCX nor shared memory has a look at them."""


def missing_settings(env: Mapping[str, str], prefix: Path) -> dict[str, str]:
    """The variables to be set: those of DEFAULTS that neither the environment nor a file of parameters has.

    Args:
        env: the environment, in which mpirun has put what its own --mca said.
        prefix: where Open MPI is installed.
    """
    said = {name.removeprefix(_PREFIX) for name in env} | set(_in_files(param_files(env, prefix)))
    return {_PREFIX + name: value for name, value in DEFAULTS.items() if name not in said}


def param_files(env: Mapping[str, str], prefix: Path) -> list[Path]:
    """The files that Open MPI reads; a variable of the environment would overrule what they say."""
    for name in _FILES:
        if env.get(name):
            return [Path(path) for path in re.split("[,:]", env[name]) if path]
    home = [Path(env["HOME"], ".openmpi/mca-params.conf")] if env.get("HOME") else []
    return [*home, prefix / "etc/openmpi-mca-params.conf"]


def _in_files(paths: Iterable[Path]) -> Iterable[str]:
    for path in paths:
        with suppress(OSError):  # most often there is none, and Open MPI says nothing of it either
            yield from _NAME.findall(path.read_text(encoding="utf-8", errors="replace"))
