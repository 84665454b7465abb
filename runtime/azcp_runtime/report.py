"""--report: one run as JSON, for machines and for the timeline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from azcp_runtime import __version__
from azcp_runtime.contract import REPORT_SCHEMA, WriteError
from azcp_runtime.engine.totals import RankTotals
from azcp_runtime.mpi.ranks import Seat
from azcp_runtime.options import Options

_NOT_SHOWN: Final = ("source", "dest", "sas_file", "auth")
_FOR_SUMMARY: Final = ("fetch_span", "bcast_span", "retries")


def write_report(
    path: Path,
    options: Options,
    source: str,
    seat: Seat,
    stages: Mapping[str, Mapping[str, float]],
    totals: Sequence[RankTotals],
    retries: Mapping[str, int],
) -> None:
    """Write the report; source is the location without its signature.

    Raises:
        WriteError: the file cannot be written.
    """
    report = {
        "schema": REPORT_SCHEMA,
        "version": __version__,
        "source": source,
        "dest": str(options.dest),
        "nodes": seat.nodes,
        "rails": seat.rails,
        "options": {
            name: str(value) if isinstance(value, Path) else value
            for name, value in asdict(options).items()
            if name not in _NOT_SHOWN and value is not None
        },
        "stages": stages,
        "ranks": [
            {name: value for name, value in asdict(row).items() if name not in _FOR_SUMMARY} for row in totals
        ],
        "retries": dict(retries),
    }
    try:
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise WriteError(f"cannot write the report {path}: {error.strerror}") from error
