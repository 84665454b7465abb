"""(a) One pass on a cluster whose links are shaped, against the exact bounds of one and of two stages."""

from __future__ import annotations

import statistics
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from account import cpu_seconds, master_pid, running
from dataset import GIB, MIB, differing_names, write_large_files
from launch import RunFailedError, distribute, mpirun
from namespaces import (
    FABRIC,
    FRONT,
    MTU_BYTES,
    Cluster,
    inside,
    payload_share,
    remote_shell,
    sent_bytes,
    shaped_cluster,
)
from nginx import configure, container_folder, container_url
from table import Table, at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Iterator

_NODES: Final = 4
_RATE_BPS: Final = 400_000_000
FILES: Final = 16
_AIM_ONE_PASS: Final = 1.15
_AIM_TWO_STAGES: Final = 1.5
_PORT: Final = 8080  # in a namespace of the bench's own, where nothing else listens


@dataclass(frozen=True)
class Bounds:
    """What no run can beat, in seconds."""

    download_s: float
    broadcast_s: float

    @property
    def one_pass_s(self) -> float:
        """Download and broadcast side by side."""
        return max(self.download_s, self.broadcast_s)

    @property
    def two_stages_s(self) -> float:
        """Broadcast after download."""
        return self.download_s + self.broadcast_s


@dataclass(frozen=True)
class Shaped:
    """A cluster's size and links, in bits per second: the account in total, the fabric of each node."""

    nodes: int
    egress_bps: int
    fabric_bps: int


@dataclass(frozen=True)
class Measured:
    """What one pass took."""

    run_s: float
    wall_s: float
    account_bytes: int
    account_cpu_s: float
    ranks_cpu_s: float
    report: dict[str, Any]


def bounds(size_bytes: int, nodes: int, egress_bps: float, fabric_bps: float) -> Bounds:
    """The exact bounds for a data set on nodes with these links."""
    bits = size_bytes * 8
    return Bounds(bits / egress_bps, bits * (nodes - 1) / nodes / fabric_bps)


def measure(*, quick: bool = False) -> list[Table]:
    """Passes over fresh destinations, each checked byte by byte."""
    size_bytes, repeats = (256 * MIB, 1) if quick else (GIB, 3)
    with tempfile.TemporaryDirectory(prefix="azcp-bench-") as name:
        folder = Path(name)
        source = container_folder(folder / "root") / "set"
        write_large_files(source, FILES, size_bytes // FILES)
        cluster = Shaped(_NODES, _RATE_BPS, _RATE_BPS)
        passes = [one_pass(folder / f"pass{i}", source, cluster) for i in range(repeats)]
    return [_table(size_bytes, passes)]


def one_pass(folder: Path, source: Path, shaped: Shaped, *options: str) -> Measured:
    """A pass with these options from `source` to a cluster of its own, each byte compared afterwards.

    Raises:
        RunFailedError: it failed, or a node has other bytes.
    """
    folder.mkdir()
    links = shaped_cluster(shaped.nodes, shaped.egress_bps, shaped.fabric_bps)
    with links as cluster, _account(folder, source, cluster) as master:
        before_bytes, before_s = sent_bytes(cluster.account, FRONT), cpu_seconds(master)
        url = container_url(cluster.account_address, _PORT, tls=False)
        run = distribute(_launcher(folder, cluster), f"{url}/set", folder / "dest", options, {})
        account_bytes = sent_bytes(cluster.account, FRONT) - before_bytes
        account_cpu_s = cpu_seconds(master) - before_s
    for node in cluster.nodes:
        if names := differing_names(source, folder / node):
            raise RunFailedError(f"{node} has other bytes than the source in {', '.join(names)}")
    ranks_cpu_s = run.sum_of("cpu_seconds")
    return Measured(run.total_s, run.wall_s, account_bytes, account_cpu_s, ranks_cpu_s, run.report)


@contextmanager
def _account(folder: Path, source: Path, cluster: Cluster) -> Iterator[int]:
    """Nginx in the account's namespace; the process id of its master."""
    root = source.parents[2]
    command = configure(folder / "nginx", root, address=cluster.account_address, port=_PORT, tls=False)
    with running(inside(cluster.account, command)):
        yield master_pid(folder / "nginx")


def _launcher(folder: Path, cluster: Cluster) -> list[str]:
    """Mpirun in the launcher's namespace; each node sees its own folder at DEST."""
    (folder / "dest").mkdir()
    for node in cluster.nodes:
        (folder / node).mkdir()
    agent = folder / "remote-shell"
    agent.write_text(remote_shell(folder, folder / "dest"))
    agent.chmod(0o700)
    links = {"btl_tcp_if_include": FABRIC, "oob_tcp_if_include": FABRIC, "btl": "tcp,self", "pml": "ob1"}
    settings = [("--mca", name, value) for name, value in {**links, "plm_rsh_agent": str(agent)}.items()]
    hosts = ["--host", ",".join(cluster.nodes), "--map-by", "ppr:1:node"]
    return inside(cluster.launcher, mpirun(len(cluster.nodes), *hosts, *chain.from_iterable(settings)))


def _table(size_bytes: int, passes: list[Measured]) -> Table:
    bound = bounds(size_bytes, _NODES, _RATE_BPS, _RATE_BPS)
    run_s = statistics.median(one.run_s for one in passes)
    wall_s = statistics.median(one.wall_s for one in passes)
    over, under = run_s / bound.one_pass_s, bound.two_stages_s / run_s
    account_cores = max(one.account_cpu_s / one.run_s for one in passes)
    ranks_cpu_s = statistics.median(one.ranks_cpu_s for one in passes) / _NODES / (size_bytes / GIB)
    egress = statistics.median(one.account_bytes for one in passes) / size_bytes
    rate = f"{_RATE_BPS / 1e6:g} Mb/s"
    return Table(
        f"(a) one pass of {size_bytes / GIB:g} GiB to {_NODES} nodes, E = F = {rate}",
        ("figure", "value", "aim"),
        (
            ("bound of one pass, max(S/E, S(N-1)/N/F)", f"{bound.one_pass_s:.2f} s", ""),
            ("bound of two stages, S/E + S(N-1)/N/F", f"{bound.two_stages_s:.2f} s", ""),
            ("measured, listing to last rename", f"{run_s:.2f} s", ""),
            ("measured / bound of one pass", f"{over:.3f}", at_most(over, _AIM_ONE_PASS)),
            ("bound of two stages / measured", f"{under:.3f}", at_least(under, _AIM_TWO_STAGES)),
            ("mpirun from start to end", f"{wall_s:.2f} s", ""),
            ("sent by the account / data set", f"{egress:.4f}", ""),
            ("cores that the account was busy with", f"{account_cores:.2f}", ""),
            ("CPU seconds per GiB and node", f"{ranks_cpu_s:.2f}", ""),
        ),
        _remarks(passes),
    )


def _remarks(passes: list[Measured]) -> tuple[str, ...]:
    runs = ", ".join(f"{one.run_s:.2f}" for one in passes)
    return (
        f"median of {len(passes)}: {runs} s; every byte compared afterwards; one disk behind all nodes",
        f"bounds leave out headers: {payload_share():.1%} of a rate is payload at MTU {MTU_BYTES}",
        "tbf on the account's interface (E in total) and on each fabric link in both directions (F)",
    )
