"""(h) Chunk and window: the default, what the probe finds, and the best of several that are pinned.

On 2 busy CPUs (load 7 to 11), 96 MiB over links of 100 Mb/s, broadcasts against their bound: on 2 nodes
the default took 1.11 x, tuned 1.04 x, the best pinned one (256 KiB, window 4) 1.02 x; on 4 nodes 1.14 x,
1.21 x with the default kept, and 1.03 x. So a probe wins at most a tenth here, and costs 1.0 to 1.5 s:
it is for fabrics that differ more from the default, and for sets that take minutes.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dataset import MIB, write_large_files
from namespaces import payload_share
from nginx import container_folder
from shaped import FILES, Measured, Shaped, bounds, one_pass
from table import Table, at_most

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NODES: Final = (2, 4)
_FABRIC_BPS: Final = 100_000_000
_EGRESS_BPS: Final = 400_000_000
"""So much that the account bounds no pass."""

_DEFAULT: Final = ("--bcast-tune=off",)
_TUNED: Final = ("--bcast-tune=always",)
_PINNED: Final = tuple(
    (f"--bcast-chunk={chunk}", f"--bcast-pipeline={window}")
    for chunk, window in (("256KiB", 4), ("256KiB", 8), ("1MiB", 8), ("4MiB", 4))
)
_AIM: Final = 1.1


def measure(*, quick: bool = False) -> Iterator[Table]:
    """Passes with each setting in turn over fresh destinations, each checked byte by byte."""
    size_bytes, repeats = (64 * MIB, 1) if quick else (96 * MIB, 2)
    with tempfile.TemporaryDirectory(prefix="azcp-bench-") as name:
        folder = Path(name)
        source = container_folder(folder / "root") / "set"
        write_large_files(source, FILES, size_bytes // FILES)
        for nodes in _NODES:
            yield _on(nodes, folder, source, size_bytes, repeats)


def _on(nodes: int, folder: Path, source: Path, size_bytes: int, repeats: int) -> Table:
    cluster = Shaped(nodes, _EGRESS_BPS, _FABRIC_BPS)
    settings = (_DEFAULT, _TUNED, *_PINNED)
    passes: dict[Sequence[str], list[Measured]] = {options: [] for options in settings}
    for index in range(repeats):
        for at, options in enumerate(settings):
            passes[options].append(one_pass(folder / f"nodes{nodes}-{index}-{at}", source, cluster, *options))
    return _table(nodes, size_bytes, passes)


def _table(nodes: int, size_bytes: int, passes: dict[Sequence[str], list[Measured]]) -> Table:
    bound_s = bounds(size_bytes, nodes, _EGRESS_BPS, _FABRIC_BPS).broadcast_s / payload_share()
    spans = {options: [_bcast_s(one) for one in done] for options, done in passes.items()}
    best = min(_PINNED, key=lambda options: statistics.median(spans[options]))
    best_s, tuned_s = (statistics.median(spans[options]) for options in (best, _TUNED))
    probes = [one.report["tune"] for one in passes[_TUNED]]
    rows = [
        _row("default", passes[_DEFAULT], bound_s, ""),
        _row("tuned", passes[_TUNED], bound_s, at_most(tuned_s / best_s, _AIM, " x the best")),
        *(
            _row(" ".join(options), passes[options], bound_s, "best" if options == best else "")
            for options in _PINNED
        ),
    ]
    found = "; ".join(f"{_setting(probe)} in {probe['seconds']:.2f} s" for probe in probes)
    return Table(
        f"(h) {size_bytes / MIB:g} MiB to {nodes} nodes with links of {_FABRIC_BPS / 1e6:g} Mb/s each",
        ("setting", "chunk, window", "broadcast", "/ bound", "whole run", "aim"),
        tuple(rows),
        (
            f"median of {len(probes)}; the bound of the broadcasts is S(N-1)/N/F, {bound_s:.2f} s of payload",
            f"the probe found {found}; a whole run has it in its time",
        ),
    )


def _row(name: str, passes: Sequence[Measured], bound_s: float, aim: str) -> tuple[str, ...]:
    seconds = statistics.median(_bcast_s(one) for one in passes)
    plan = passes[-1].report["plan"]
    setting = _setting({"chunk_bytes": plan["chunk_bytes"], "window": plan["lane_slots"]})
    whole_s = statistics.median(one.run_s for one in passes)
    return (name, setting, f"{seconds:.2f} s", f"{seconds / bound_s:.3f}", f"{whole_s:.2f} s", aim)


def _bcast_s(one: Measured) -> float:
    seconds: float = one.report["stages"]["bcast"]["seconds"]
    return seconds


def _setting(figures: dict[str, Any]) -> str:
    return f"{figures['chunk_bytes'] >> 10} KiB, {figures['window']}"
