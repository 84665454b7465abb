"""A small report as azcp-distribute writes it, and variations of it."""

from __future__ import annotations

import copy
from typing import Any

from azcp_runtime.contract import REPORT_SCHEMA

REPORT: dict[str, Any] = {
    "schema": REPORT_SCHEMA,
    "version": "0.1.0",
    "source": "https://account.blob.core.windows.net/data/",
    "dest": "/mnt/nvme",
    "outcome": {"status": "done", "exit_code": 0, "reason": ""},
    "versions": {"azcp": "0.1.0", "Python": "3.11.7", "Linux": "6.18.0", "Open MPI": "", "UCX": ""},
    "transport": {},
    "nodes": 1,
    "rails": 1,
    "options": {},
    "plan": {"files": 2, "bytes": 30, "owners": 1, "shards": 2, "spread_percent": 0.0},
    "stages": {
        "list": {"files": 2, "bytes": 30, "seconds": 0.1},
        "diff": {"transfer": 2, "peer": 0, "azure": 2, "skipped": 0, "seconds": 0.0},
        "download": {"bytes": 30, "seconds": 1.0},
        "bcast": {"shards": 2, "bytes": 30, "seconds": 1.0},
        "filelist": {"entries": 0, "seconds": 0.0},
        "total": {"seconds": 1.5},
    },
    "ranks": [
        {
            "rank": 0,
            "node": 0,
            "rail": 0,
            "host": "n0",
            "fetched_bytes": 30,
            "received_bytes": 0,
            "written_bytes": 30,
            "cpu_seconds": 0.5,
            "max_rss_bytes": 1000,
            "samples": {"seconds": [0, 1], "fetched": [0, 30], "received": [0, 0], "written": [0, 30]},
        }
    ],
    "retries": {"503": 1},
}


def changed(**values: object) -> dict[str, Any]:
    """The report with other values in its first rank."""
    data = copy.deepcopy(REPORT)
    data["ranks"][0] |= values
    return data
