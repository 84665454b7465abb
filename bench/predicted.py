"""(p) The time that azcp-kit plan predicts, against passes on clusters of several sizes with shaped links."""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_kit.listing import write_listing
from azcp_kit.plan import ClusterPlan, PlanRequest, plan_cluster
from dataset import GIB, MIB, write_large_files
from namespaces import payload_share
from nginx import container_folder
from shaped import FILES, Shaped, one_pass
from table import Table, at_most

_NODES: Final = (2, 4, 8)
# Slow enough for two cores to carry eight nodes.
_EGRESS_BPS: Final = 64_000_000
_FABRIC_BPS: Final = 64_000_000
# A chunk is a 128th of a share of real size; the least automatic one would be a 24th of these.
_CHUNK: Final = "256KiB"
_UNBOUND_BYTES_PER_S: Final = 10e9
_AIM: Final = 0.15


@dataclass(frozen=True)
class _Trial:
    nodes: int
    plan: ClusterPlan
    seconds: tuple[float, ...]

    @property
    def measured_s(self) -> float:
        return statistics.median(self.seconds)

    @property
    def error(self) -> float:
        return self.plan.forecasts.one_pass.seconds / self.measured_s - 1


def measure(*, quick: bool = False) -> list[Table]:
    """Passes over fresh destinations on 2, 4 and 8 nodes, each checked byte by byte."""
    size_bytes, repeats = (192 * MIB, 1) if quick else (256 * MIB, 3)
    with tempfile.TemporaryDirectory(prefix="azcp-bench-") as name:
        folder = Path(name)
        source = container_folder(folder / "root") / "set"
        write_large_files(source, FILES, size_bytes // FILES)
        trials = [_trial(folder / f"nodes{nodes}", source, nodes, repeats) for nodes in _NODES]
    return [_table(size_bytes, trials)]


def _trial(folder: Path, source: Path, nodes: int, repeats: int) -> _Trial:
    folder.mkdir()
    listing = folder / "listing.tsv"
    write_listing(source, listing)
    egress, fabric = (rate * payload_share() / 8 for rate in (_EGRESS_BPS, _FABRIC_BPS))
    plan = plan_cluster(PlanRequest(listing, nodes, 1, "", egress, fabric, _UNBOUND_BYTES_PER_S, _CHUNK))
    shaped = Shaped(nodes, _EGRESS_BPS, _FABRIC_BPS)
    chunk = f"--bcast-chunk={_CHUNK}"
    passes = [one_pass(folder / f"pass{i}", source, shaped, chunk) for i in range(repeats)]
    return _Trial(nodes, plan, tuple(each.run_s for each in passes))


def _table(size_bytes: int, trials: list[_Trial]) -> Table:
    rows = tuple(
        (
            f"{trial.nodes}",
            trial.plan.forecasts.one_pass.bound_by.value,
            f"{trial.plan.forecasts.one_pass.seconds:.2f} s",
            f"{trial.measured_s:.2f} s",
            f"{trial.error:+.1%}",
            at_most(abs(trial.error), _AIM),
        )
        for trial in trials
    )
    runs = "; ".join(", ".join(f"{seconds:.2f}" for seconds in trial.seconds) for trial in trials)
    rates = f"E = {_EGRESS_BPS / 1e6:g} Mb/s, F = {_FABRIC_BPS / 1e6:g} Mb/s"
    return Table(
        f"(p) predicted and measured time of {size_bytes / GIB:g} GiB, {rates}",
        ("nodes", "bound by", "predicted", "measured", "error", "aim"),
        rows,
        (
            f"measured from listing to last rename, median of {runs} s; every byte compared afterwards",
            f"predicted from the payload's share of the rates, {payload_share():.1%}; the disk is not shaped",
        ),
    )
