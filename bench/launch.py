"""Starts azcp-distribute under mpirun as the benches need it and takes in its report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_RUN_DEADLINE_S: Final = 900.0
_STOP_DEADLINE_S: Final = 10.0

# More ranks than cores: without yielding, ranks that wait keep the others from the cores.
_CROWDED: Final = ("--oversubscribe", "--mca", "mpi_yield_when_idle", "1")
_AS_ROOT: Final = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class RunFailedError(RuntimeError):
    """The program under test failed or did not end; the message holds what it said."""


@dataclass(frozen=True)
class Run:
    """A finished run of azcp-distribute."""

    wall_s: float
    """From starting mpirun to its end, the start of Python on every rank included."""
    report: dict[str, Any]

    @property
    def total_s(self) -> float:
        """Seconds of the run itself, from the listing to the last rename."""
        seconds: float = self.report["stages"]["total"]["seconds"]
        return seconds

    def sum_of(self, name: str) -> float:
        """A figure of the ranks, summed."""
        return sum(float(rank[name]) for rank in self.report["ranks"])


def mpirun(ranks: int, *options: str) -> list[str]:
    """The beginning of a command that starts `ranks` ranks with this environment's own mpirun."""
    return [str(Path(sys.prefix, "bin", "mpirun")), "-n", str(ranks), *_CROWDED, *options]


def distribute(
    launcher: Sequence[str],
    source: str,
    dest: Path,
    options: Sequence[str],
    environment: Mapping[str, str],
) -> Run:
    """Run azcp-distribute from `source` to `dest` and read its report, which lies beside `dest`."""
    report = dest.with_name(dest.name + "-report.json")
    program = [sys.executable, "-m", "azcp_runtime", source, str(dest), "--report", str(report), *options]
    started_s = time.monotonic()
    run([*launcher, *program], {**environment, "AZCP_PROGRESS": "none"})
    wall_s = time.monotonic() - started_s
    return Run(wall_s, json.loads(report.read_text()))


def run(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run a command to its end; what it wrote to standard output.

    Raises:
        RunFailedError: it ended with another code than 0, or not in time.
    """
    process = subprocess.Popen(
        command,
        env={**os.environ, **_AS_ROOT, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        output, errors = process.communicate(timeout=_RUN_DEADLINE_S)
    except BaseException:
        process.terminate()
        process.wait(timeout=_STOP_DEADLINE_S)
        raise
    if process.returncode != 0:
        raise RunFailedError(f"{' '.join(command)} ended with {process.returncode}:\n{output}{errors}")
    return str(output)
