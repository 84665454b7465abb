"""Nodes of a job as network namespaces, each with a link to the account and one to the fabric, to be cut."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from namespaces import FABRIC, Cluster, inside, remote_shell, shaped_cluster

from tests.lab.fault_account import FaultAccount
from tests.lab.faults import Fault
from tests.lab.mpi import MPIRUN, Job, launched
from tests.lab.processes import kill
from tests.lab.stored_blobs import StoredBlob

RATE_BPS: Final = 1_000_000_000
_CLONE_NEWNET: Final = 0x40000000
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Nodes:
    """The namespaces, and the folder in which each has its disk."""

    cluster: Cluster
    folder: Path

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes' host names."""
        return self.cluster.nodes

    @property
    def dest(self) -> Path:
        """DEST as every node sees it."""
        return self.folder / "dest"

    def tree(self, node: str) -> Path:
        """That node's DEST, seen from here."""
        return self.folder / node

    @contextmanager
    def started(self, source: str, *options: str) -> Iterator[Job]:
        """azcp-distribute with a rank on each node, as mpirun starts it."""
        agent = self.folder / "remote-shell"
        settings = {
            "btl_tcp_if_include": FABRIC,
            "oob_tcp_if_include": FABRIC,
            "btl": "tcp,self",
            "pml": "ob1",
            "mpi_yield_when_idle": "1",
            "plm_rsh_agent": str(agent),
            "oob_tcp_keepalive_time": "2",
            "oob_tcp_keepalive_intvl": "1",
            "oob_tcp_keepalive_probes": "2",
        }
        mca = [word for name, value in settings.items() for word in ("--mca", name, value)]
        hosts = ["-n", str(len(self.names)), "--host", ",".join(self.names), "--map-by", "ppr:1:node"]
        command = inside(self.cluster.launcher, [str(MPIRUN), *hosts, "--bind-to", "none", *mca])
        with launched(command, source, self.dest, *options) as job:
            yield job

    def cut(self, node: str, network: str) -> None:
        """Take a link down without a word to either end: packets are lost, no connection is closed."""
        discard = ["tc", "-n", node, "qdisc", "replace", "dev", network, "root", "tbf"]
        subprocess.run([*discard, "rate", "8bit", "burst", "1", "latency", "1ms"], check=True)

    def kill(self, node: str) -> None:
        """What a power cut leaves of a node: nothing that runs."""
        listed = subprocess.run(["ip", "netns", "pids", node], check=True, capture_output=True, text=True)
        for pid in listed.stdout.split():
            kill(int(pid))


@contextmanager
def namespace_nodes(folder: Path, count: int) -> Iterator[Nodes]:
    """So many nodes, for the length of a with block; needs root."""
    with shaped_cluster(count, RATE_BPS, RATE_BPS) as cluster:
        for name in ("dest", *cluster.nodes):
            (folder / name).mkdir()
        agent = folder / "remote-shell"
        agent.write_text(remote_shell(folder, folder / "dest"))
        agent.chmod(0o700)
        yield Nodes(cluster, folder)


def account_of(nodes: Nodes, blobs: dict[str, StoredBlob], faults: Sequence[Fault] = ()) -> FaultAccount:
    """An account that listens in a namespace of its own."""
    with _entered(nodes.cluster.account):
        return FaultAccount(blobs, faults, address=nodes.cluster.account_address)


@contextmanager
def _entered(namespace: str) -> Iterator[None]:
    """Sockets that this thread makes belong to that namespace (setns(2)), until the block ends."""
    with (
        Path("/proc/thread-self/ns/net").open("rb") as home,
        Path("/run/netns", namespace).open("rb") as there,
    ):
        _set_namespace(there.fileno())
        try:
            yield
        finally:
            _set_namespace(home.fileno())


def _set_namespace(descriptor: int) -> None:
    if _LIBC.setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
