"""(r) One rail against two: nodes with two shaped links to the fabric, of which one pass uses one or both."""

from __future__ import annotations

import statistics
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from account import running
from dataset import MIB, differing_names, write_large_files
from launch import RunFailedError, distribute, mpirun
from namespaces import (
    FABRIC,
    Cluster,
    fabric_name,
    inside,
    payload_share,
    remote_shell,
    sent_bytes,
    shaped_cluster,
)
from nginx import configure, container_folder, container_url
from table import Table, at_least

if TYPE_CHECKING:
    from collections.abc import Iterator

_NODES: Final = 2
_RAILS: Final = 2
_FILES: Final = 4
_LINK_BPS: Final = 100_000_000
_EGRESS_BPS: Final = 1_000_000_000
"""So much that the account bounds neither pass."""

_CHUNK: Final = "256KiB"
"""Of a larger one too few are on their way: with two nodes the replies to the one direction stand in a line
behind the data of the other, and both links would be idle for half of the time."""

_AIM: Final = 1.7
_PORT: Final = 8080  # in a namespace of the bench's own, where nothing else listens


@dataclass(frozen=True)
class _Pass:
    """Seconds of a pass, and what one node has sent over each link."""

    total_s: float
    sent: tuple[int, ...]


def measure(*, quick: bool = False) -> list[Table]:
    """Passes with one rail and with two in turn, each over fresh destinations and checked byte by byte."""
    size_bytes, repeats = (256 * MIB, 1) if quick else (512 * MIB, 2)
    with tempfile.TemporaryDirectory(prefix="azcp-bench-") as name:
        folder = Path(name)
        source = container_folder(folder / "root") / "set"
        write_large_files(source, _FILES, size_bytes // _FILES)
        pairs = [
            tuple(_one_pass(folder / f"pass{i}-{rails}", source, rails) for rails in (1, _RAILS))
            for i in range(repeats)
        ]
    return [_table(size_bytes, [one for one, _ in pairs], [two for _, two in pairs])]


def _one_pass(folder: Path, source: Path, rails: int) -> _Pass:
    folder.mkdir()
    with (
        shaped_cluster(_NODES, _EGRESS_BPS, _LINK_BPS, _RAILS) as cluster,
        _account(folder, source, cluster),
    ):
        url = container_url(cluster.account_address, _PORT, tls=False)
        devices = ",".join(map(fabric_name, range(rails)))
        options = ["--rails", str(rails), "--rail-devices", devices, "--bcast-chunk", _CHUNK]
        run = distribute(_launcher(folder, cluster, rails), f"{url}/set", folder / "dest", options, {})
        links = range(_RAILS)
        sent = tuple(sent_bytes(cluster.nodes[0], fabric_name(link)) for link in links)
    for node in cluster.nodes:
        if names := differing_names(source, folder / node):
            raise RunFailedError(f"{node} has other bytes than the source in {', '.join(names)}")
    return _Pass(run.total_s, sent)


@contextmanager
def _account(folder: Path, source: Path, cluster: Cluster) -> Iterator[None]:
    """Nginx in the account's namespace."""
    root = source.parents[2]
    command = configure(folder / "nginx", root, address=cluster.account_address, port=_PORT, tls=False)
    with running(inside(cluster.account, command)):
        yield


def _launcher(folder: Path, cluster: Cluster, rails: int) -> list[str]:
    """Mpirun in the launcher's namespace; the ranks choose their links themselves."""
    (folder / "dest").mkdir()
    for node in cluster.nodes:
        (folder / node).mkdir()
    agent = folder / "remote-shell"
    agent.write_text(remote_shell(folder, folder / "dest"))
    agent.chmod(0o700)
    settings = {
        "oob_tcp_if_include": FABRIC,
        "btl": "tcp,vader,self",
        "pml": "ob1",
        "plm_rsh_agent": str(agent),
    }
    words = chain.from_iterable(("--mca", name, value) for name, value in settings.items())
    hosts = ["--host", ",".join(cluster.nodes), "--map-by", f"ppr:{rails}:node", "--bind-to", "none"]
    return inside(cluster.launcher, mpirun(_NODES * rails, *hosts, *words))


def _table(size_bytes: int, one: list[_Pass], two: list[_Pass]) -> Table:
    bound_s = size_bytes * 8 * (_NODES - 1) / _NODES / _LINK_BPS / payload_share()
    one_s, two_s = (statistics.median(each.total_s for each in passes) for passes in (one, two))
    faster = one_s / two_s
    shares = [each.sent[0] / sum(each.sent) for each in two]
    rate = f"{_LINK_BPS / 1e6:g} Mb/s"
    return Table(
        f"(r) {size_bytes / MIB:g} MiB to {_NODES} nodes with {_RAILS} links of {rate} to the fabric each",
        ("figure", "value", "aim"),
        (
            ("bound of one rail, S(N-1)/N/F", f"{bound_s:.2f} s", ""),
            ("one rail, listing to last rename", f"{one_s:.2f} s", ""),
            ("bound of two rails", f"{bound_s / _RAILS:.2f} s", ""),
            ("two rails, listing to last rename", f"{two_s:.2f} s", ""),
            ("one rail / two rails", f"{faster:.2f}", at_least(faster, _AIM)),
            ("share of the first link with one rail", f"{one[-1].sent[0] / sum(one[-1].sent):.1%}", ""),
            ("share of the first link with two", f"{min(shares):.1%} to {max(shares):.1%}", ""),
        ),
        (
            f"median of {len(one)}: {_seconds(one)} against {_seconds(two)} s; every byte compared",
            f"payload is {payload_share():.1%} of a rate; the account sends {_EGRESS_BPS / 1e9:g} Gb/s",
            f"each rank is bound to its link by --rails and --rail-devices; ob1 over TCP, chunks of {_CHUNK}",
        ),
    )


def _seconds(passes: list[_Pass]) -> str:
    return ", ".join(f"{one.total_s:.2f}" for one in passes)
