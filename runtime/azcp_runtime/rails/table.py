"""What all ranks have been bound to: refused where nodes differ, told once for all nodes that are alike."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from azcp_runtime.contract import PreflightError, UsageError
from azcp_runtime.contract.options import AUTO, Rails
from azcp_runtime.mpi.ranks import Ranks, Seat
from azcp_runtime.rails.choose import Binding
from azcp_runtime.rails.topology import written_cpus

_NAMED: Final = 4
_HEAD: Final = ("rail", "device", "link", "NUMA", "CPUs", "GID")


@dataclass(frozen=True, slots=True)
class Row:
    """One rank's line of the table.

    Attributes:
        rail: which of its node's ranks it is.
        device: empty where MPI chooses.
        link: what it is.
        numa: its NUMA node, or a dash.
        cpus: empty where the rank is not pinned.
        gid: the entry of the GID table, or a dash.
        trouble: empty where all is well.
    """

    rail: int
    device: str
    link: str
    numa: str
    cpus: str
    gid: str
    trouble: str

    def cells(self) -> tuple[str, ...]:
        """As the table has them."""
        cpus = self.cpus or "all"
        return (str(self.rail), self.device or "as MPI finds", self.link or "-", self.numa, cpus, self.gid)


def row_of(binding: Binding, env: Mapping[str, str]) -> Row:
    """The line of one rank, with the device that MPI will really see."""
    outlet = binding.outlet
    numa = str(outlet.numa_node) if outlet and outlet.numa_node >= 0 else "-"
    row = Row(
        rail=binding.rail,
        device=outlet.name if outlet else "",
        link=outlet.link if outlet else "",
        numa=numa,
        cpus=written_cpus(binding.cpus),
        gid="-" if binding.gid_index is None else str(binding.gid_index),
        trouble=binding.trouble,
    )
    said = env.get("UCX_NET_DEVICES", row.device)
    return row if said == row.device else replace(row, device=said, link="UCX_NET_DEVICES", numa="-")


def share_rails(ranks: Ranks, wanted: Rails, binding: Binding, env: Mapping[str, str]) -> list[str]:
    """The table, on rank 0; nothing elsewhere. All ranks call it.

    Args:
        ranks: the world.
        wanted: of --rails.
        binding: of this rank.
        env: of this process.

    Raises:
        UsageError: a node has another number of ranks.
        PreflightError: a node cannot have the rails.
    """
    seat = ranks.seat
    check_count(seat, wanted)
    told = ranks.gather(json.dumps(asdict(row_of(binding, env))).encode())
    if seat.rank != 0:
        return []
    return list(table(seat, [Row(**json.loads(text)) for text in told]))


def check_count(seat: Seat, wanted: Rails) -> None:
    """Refuse another number of ranks per node than was asked for.

    Raises:
        UsageError: it is another.
    """
    if wanted not in (AUTO, seat.rails):
        raise UsageError(
            f"--rails {wanted}, but each node has {seat.rails} rank{'s' if seat.rails > 1 else ''}",
            remedy=f"azcp-launch starts them; with mpirun it is --map-by ppr:{wanted}:node",
        )


def table(seat: Seat, rows: Sequence[Row]) -> Iterator[str]:
    """The lines of the table, once for all nodes that are alike.

    Args:
        seat: rank 0's.
        rows: by rank.

    Raises:
        PreflightError: a node cannot have the rails, or the nodes are of different kinds.
    """
    nodes: dict[int, list[Row]] = {}
    for rank, row in enumerate(rows):
        nodes.setdefault(seat.node_of[rank], []).append(row)
    _check(seat, nodes)
    layouts: dict[tuple[Row, ...], list[str]] = {}
    for node, its in nodes.items():
        layouts.setdefault(tuple(its), []).append(seat.hosts[node])
    for layout, hosts in layouts.items():
        many = f"{len(hosts)} node{'s' if len(hosts) > 1 else ''}"
        yield f"{seat.rails} rail{'s' if seat.rails > 1 else ''} on {many}: {_named(hosts)}"
        yield from _columns([_HEAD, *(row.cells() for row in layout)])


def _check(seat: Seat, nodes: Mapping[int, Sequence[Row]]) -> None:
    troubles: dict[str, list[str]] = {}
    for node, rows in nodes.items():
        for text in dict.fromkeys(row.trouble for row in rows if row.trouble):
            troubles.setdefault(text, []).append(seat.hosts[node])
        if [row.rail for row in rows] != list(range(seat.rails)):
            troubles.setdefault("its ranks are numbered in another order", []).append(seat.hosts[node])
    if troubles:
        what = "; ".join(f"{_named(hosts)}: {text}" for text, hosts in troubles.items())
        raise PreflightError(
            f"{seat.rails} rails per node are not to be had: {what}",
            remedy="ask for fewer with --rails, name devices with --rail-devices, or leave the node out",
        )
    without = [seat.hosts[node] for node, rows in nodes.items() if not rows[0].device]
    if without and len(without) < len(nodes):
        raise PreflightError(
            f"no HCA that can be used on {_named(without)}, though on the other nodes",
            remedy="azcp-doctor tells why; leave them out, or name interfaces with --rail-devices",
        )


def _named(hosts: Sequence[str]) -> str:
    first = ", ".join(hosts[:_NAMED])
    return f"{first} and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else first


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
