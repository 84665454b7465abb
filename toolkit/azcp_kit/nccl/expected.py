"""The bus bandwidth to expect of a VM size, from expected.toml, each figure with its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from azcp_runtime.contract.units import parse_size

EXPECTED: Final = Path(__file__).with_name("expected.toml")
"""The file of the figures."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measurement that somebody published.

    Args:
        sku: name of the VM size.
        gbps: bus bandwidth, 10^9 bytes per second.
        size_bytes: of the message.
        nodes: that took part.
        via: transport that it went over; empty for whichever.
        conditions: that it was measured under.
        source: who published it.
    """

    sku: str
    gbps: float
    size_bytes: int
    nodes: int
    via: str
    conditions: str
    source: str


@cache
def load_figures() -> tuple[Figure, ...]:
    """All of them, in the order of the file."""
    import tomllib

    tables = tomllib.loads(EXPECTED.read_text(encoding="utf-8"))["figure"]
    return tuple(
        Figure(
            sku=table["sku"],
            gbps=table["gbps"],
            size_bytes=parse_size(table["size"]),
            nodes=table["nodes"],
            via=table.get("via", ""),
            conditions=table["conditions"],
            source=table["source"],
        )
        for table in tables
    )


def find_figure(sku: str, transports: Sequence[str]) -> Figure | None:
    """The figure of a size for a run over these transports; None if there is none."""
    for figure in load_figures():
        if figure.sku == sku and (not figure.via or any(each.startswith(figure.via) for each in transports)):
            return figure
    return None
