"""(g) An account that throttles: time against what it allows, and requests before and after adaptation."""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dataset import KIB
from launch import RunFailedError, distribute, mpirun
from table import Table, at_most

# The account of the tests, which can be told to refuse.
sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.lab import faults
from tests.lab.dataset import plain_data_set
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Change, Fault
from tests.lab.stored_blobs import stored
from tests.lab.throttle import Bucket, Storm

if TYPE_CHECKING:
    from tests.lab.faults import Condition

_RANKS: Final = 8
_PER_S: Final = 200.0
_BURST: Final = 20.0
_FILE_BYTES: Final = 64 * KIB
_AIM: Final = 1.3
_STORM_S: Final = 20.0
_STORM_SHARE: Final = 0.6
_OK: Final = 206
_FIRST_S: Final = 2.0


@dataclass(frozen=True)
class _Trace:
    """When each read was asked, in seconds from the first, and whether it was refused."""

    reads: tuple[tuple[float, bool], ...]

    def asked_per_s(self, since_s: float, until_s: float) -> float:
        return sum(since_s <= at < until_s for at, _ in self.reads) / (until_s - since_s)

    def refused_per_s(self, since_s: float, until_s: float) -> float:
        return sum(refused and since_s <= at < until_s for at, refused in self.reads) / (until_s - since_s)

    @property
    def refused(self) -> int:
        return sum(refused for _, refused in self.reads)

    @property
    def accepted(self) -> int:
        return len(self.reads) - self.refused

    @property
    def seconds(self) -> float:
        return max(at for at, _ in self.reads)


def measure(*, quick: bool = False) -> list[Table]:
    """A table for an account with a bound on requests, one for a storm of refusals."""
    files = 2000 if quick else 4000
    answers = {
        "503": faults.busy(),
        "503, Retry-After: 1": faults.busy("1"),
        "429": faults.too_many_requests(),
    }
    bounded = {
        name: _traced(files, change, Bucket(_PER_S, _BURST).refuses) for name, change in answers.items()
    }
    storm = _traced(files, faults.busy(), Storm(_STORM_SHARE, _STORM_S).refuses)
    return [_bounded_table(files, bounded), _storm_table(files, storm)]


def _traced(files: int, refusal: Change, when: Condition) -> _Trace:
    data_set = plain_data_set(*[_FILE_BYTES] * files)
    with (
        tempfile.TemporaryDirectory(prefix="azcp-bench-") as folder,
        FaultAccount(stored(data_set), [Fault(refusal, when=when, times=FOREVER)]) as account,
    ):
        dest = Path(folder, "dest")
        dest.mkdir()
        environment = {"AZCP_SIMULATE_NODES": str(_RANKS)}
        distribute(mpirun(_RANKS), account.url(), dest, ["--auth", "anonymous"], environment)
        reads = account.reads()
        if sum(read.status == _OK for read in reads) < files:
            raise RunFailedError(f"{files} files were distributed with fewer reads")
        shutil.rmtree(dest)
    began = reads[0].request.at
    return _Trace(tuple((read.request.at - began, read.status in {503, 429}) for read in reads))


def _bounded_table(files: int, traces: dict[str, _Trace]) -> Table:
    rows = []
    for name, trace in traces.items():
        ideal_s = (trace.accepted - _BURST) / _PER_S
        half = (trace.seconds / 2, trace.seconds)
        rows.append(
            (
                name,
                f"{trace.seconds:.1f}",
                f"{ideal_s:.1f}",
                at_most(trace.seconds / ideal_s, _AIM, " x") + f" ({trace.seconds / ideal_s:.2f})",
                f"{trace.asked_per_s(0, _FIRST_S):.0f} / {trace.refused_per_s(0, _FIRST_S):.0f}",
                f"{trace.asked_per_s(*half):.0f} / {trace.refused_per_s(*half):.1f}",
            )
        )
    return Table(
        f"(g) {files} files of {_FILE_BYTES // KIB} KiB to {_RANKS} simulated nodes, "
        f"from an account that takes {_PER_S:.0f} requests/s in all",
        (
            "refusal",
            "first to last read s",
            "ideal s",
            "aim",
            "first 2 s: asked/refused per s",
            "second half",
        ),
        tuple(rows),
        (f"ideal: as many reads as were needed, at {_PER_S:.0f}/s after a burst of {_BURST:.0f}",),
    )


def _storm_table(files: int, trace: _Trace) -> Table:
    spans = {
        "its first 2 s": (0.0, _FIRST_S),
        "its second half": (_STORM_S / 2, _STORM_S),
        "after it": (_STORM_S, trace.seconds),
    }
    rows = [
        (name, f"{trace.asked_per_s(*span):.1f}", f"{trace.refused_per_s(*span):.1f}")
        for name, span in spans.items()
    ]
    return Table(
        f"(g) the same from an account that refuses {_STORM_SHARE:.0%} of all requests for {_STORM_S:.0f} s",
        ("in the storm", "asked/s", "503/s"),
        tuple(rows),
        (
            f"{files} files in {trace.seconds:.1f} s, {trace.refused} refusals; every run ended well",
            "the account is a Python server in the bench's own process: it bounds the rate after the storm",
        ),
    )
