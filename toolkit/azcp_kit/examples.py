"""Write the generated files under examples/ again: ``python -m azcp_kit.examples examples``.

They are checked in and serve as golden files: a test makes them anew and compares.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Final

from rich.console import Console

from azcp_kit.plan import PlanRequest, plan_cluster
from azcp_kit.plan_table import plan_tables
from azcp_kit.units import parse_rate

_NODES: Final = (4, 16, 64)
_WIDTH: Final = 100


def generate(folder: Path) -> dict[Path, str]:
    """Every generated file below a folder of examples, by path: what it must hold."""
    listing = folder / "aks" / "checkpoint.tsv"
    return {listing.with_name(f"plan-{nodes}-nodes.txt"): plan_text(listing, nodes) for nodes in _NODES}


def plan_text(listing: Path, nodes: int) -> str:
    """What ``azcp-kit plan`` prints for a listing on so many nodes."""
    rates = (parse_rate(rate) for rate in ("200Gbps", "135Gbps", "100Gbps"))
    plan = plan_cluster(PlanRequest(listing, nodes, 1, "4GiB", *rates))
    console = Console(file=io.StringIO(), width=_WIDTH, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(plan_tables(plan))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def main() -> None:
    """Write them."""
    for path, text in generate(Path(sys.argv[1])).items():
        path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
