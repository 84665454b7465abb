"""Writes the listing of a folder as the TSV that the planner and --shardlist read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from azcp_runtime.contract import STATE_DIR

from azcp_kit.compare import file_names

if TYPE_CHECKING:
    from pathlib import Path


def write_listing(folder: Path, path: Path) -> None:
    """Write one line for each file under `folder`: name, tab, size in bytes."""
    names = sorted(file_names(folder, ignore=frozenset({STATE_DIR})))
    lines = [f"{name}\t{(folder / name).stat().st_size}\n" for name in names]
    # A name is bytes to Linux: what is no UTF-8 goes out as it came in.
    path.write_text("".join(lines), encoding="utf-8", errors="surrogateescape")
