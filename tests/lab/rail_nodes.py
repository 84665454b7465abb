"""Nodes of a job as network namespaces with several links to the fabric, one for each rail."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from namespaces import FABRIC, Cluster, fabric_name, inside, remote_shell, sent_bytes, shaped_cluster

from tests.lab.mpi import DISTRIBUTE, FOREIGN, MPIRUN

RATE_BPS: Final = 1_000_000_000
DEADLINE_S: Final = 120.0

OB1: Final[Mapping[str, str]] = {"pml": "ob1", "btl": "tcp,vader,self"}
"""Open MPI's own TCP between nodes."""

UCX: Final[Mapping[str, str]] = {"pml": "ucx", "pml_ucx_tls": "any", "pml_ucx_devices": "any"}
"""UCX, over TCP as well: there is no HCA here."""


@dataclass(frozen=True)
class Ended:
    """A run that has ended."""

    code: int
    stderr: str


@dataclass(frozen=True)
class RailNodes:
    """The namespaces, and the folder in which each has its disk."""

    cluster: Cluster
    folder: Path
    rails: int

    def tree(self, node: str) -> Path:
        """That node's DEST, seen from here."""
        return self.folder / node

    def sent(self, node: str) -> list[int]:
        """Bytes that it has sent over each link to the fabric."""
        return [sent_bytes(node, fabric_name(rail)) for rail in range(self.rails)]

    def distribute(self, source: Path, *options: str, transport: Mapping[str, str] = OB1) -> Ended:
        """azcp-distribute with a rank per rail on each node, to its end."""
        settings = {
            **transport,
            "oob_tcp_if_include": FABRIC,
            "mpi_yield_when_idle": "1",
            "btl_vader_single_copy_mechanism": "none",
            "plm_rsh_agent": str(self.folder / "remote-shell"),
        }
        mca = [word for name, value in settings.items() for word in ("--mca", name, value)]
        ranks = str(self.rails * len(self.cluster.nodes))
        where = ["-n", ranks, "--host", ",".join(self.cluster.nodes), "--map-by", f"ppr:{self.rails}:node"]
        crowded = ["--oversubscribe", "--bind-to", "none", "-x", "UCX_TLS=tcp,sm,self"]
        command = [str(MPIRUN), *where, *crowded, *mca, str(DISTRIBUTE), str(source)]
        ended = subprocess.run(
            inside(self.cluster.launcher, [*command, str(self.folder / "dest"), "--no-progress", *options]),
            env=_environment(),
            capture_output=True,
            check=False,
            text=True,
            timeout=DEADLINE_S,
        )
        return Ended(ended.returncode, ended.stderr)


@contextmanager
def rail_nodes(folder: Path, count: int, rails: int) -> Iterator[RailNodes]:
    """So many nodes with so many links, for the length of a with block; needs root."""
    with shaped_cluster(count, RATE_BPS, RATE_BPS, rails) as cluster:
        for name in ("dest", *cluster.nodes):
            (folder / name).mkdir()
        agent = folder / "remote-shell"
        agent.write_text(remote_shell(folder, folder / "dest"))
        agent.chmod(0o700)
        yield RailNodes(cluster, folder, rails)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return kept | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
