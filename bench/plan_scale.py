"""(d) Plan time and memory for a data set and a cluster far larger than this machine."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from dataset import GIB, KIB, MIB
from launch import run
from table import Table, at_most

_MODIFIED: Final = "Mon, 01 Jan 2024 00:00:00 GMT"
_RANKS: Final = 1024
_AIM_S: Final = 10.0
_AIM_GIB: Final = 1.5


def measure(*, quick: bool = False) -> list[Table]:
    """Each kind of data set once; the figures are those that the planner prints."""
    count = 100_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory(prefix="azcp-bench-") as name:
        listings = {
            "small, 4 KiB to 1 MiB": _listing(Path(name, "small.tsv"), count, 4 * KIB, MIB),
            "mixed, 1 KiB to 64 MiB": _listing(Path(name, "mixed.tsv"), count, KIB, 64 * MIB),
        }
        rows = tuple(_row(kind, listing, rails) for kind, listing in listings.items() for rails in (1, 8))
    return [
        Table(
            f"(d) plan of {count:,} blobs on {_RANKS:,} ranks by python -m azcp_runtime.planner",
            ("blob sizes", "rails", "plan s", "aim", "RSS GiB", "aim", "process s", "spread %", "chunk MiB"),
            rows,
            ("the plan is made on every rank; the process also starts Python and parses the listing's text",),
        )
    ]


def _listing(path: Path, count: int, smallest_bytes: int, largest_bytes: int) -> Path:
    draw = random.Random(1)
    with path.open("w") as file:
        for index in range(count):
            size_bytes = int(smallest_bytes * (largest_bytes / smallest_bytes) ** draw.random())
            folder = f"shards/{index // 1000:05}"
            name = f"{folder}/sample-{index:07}.bin"
            file.write(f"{name}\t{size_bytes}\t{_MODIFIED}\t0x{index:016X}\n")
    return path


def _row(kind: str, listing: Path, rails: int) -> tuple[str, ...]:
    program = [sys.executable, "-m", "azcp_runtime.planner", "--listing", str(listing)]
    started_s = time.monotonic()
    plan: dict[str, Any] = json.loads(run([*program, "--ranks", str(_RANKS), "--rails", str(rails)], {}))
    whole_s = time.monotonic() - started_s
    plan_s, rss_gib = plan["plan_seconds"], plan["max_rss_bytes"] / GIB
    return (
        kind,
        str(rails),
        f"{plan_s:.2f}",
        at_most(plan_s, _AIM_S, " s"),
        f"{rss_gib:.2f}",
        at_most(rss_gib, _AIM_GIB, " GiB"),
        f"{whole_s:.1f}",
        f"{plan['spread_percent']:.2f}",
        f"{plan['chunk_bytes'] / MIB:.2f}",
    )
