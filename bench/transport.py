"""(b) What a GiB over https costs the client in CPU seconds: our body reader against others."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from account import Account, serve
from dataset import GIB, MIB, write_large_files
from nginx import container_folder
from table import Table, at_most

OURS: Final = "azcp_runtime"
BARE: Final = "MemoryBIO"
DEFAULT: Final = "storage-blob ranges"
FLOOR: Final = "plain socket"

_CANDIDATES: Final = {
    FLOOR: "http, recv_into: the kernel's share, no TLS",
    BARE: "bare threads + ssl.MemoryBIO, 256 KiB per recv",
    "ssl recv_into": "bare threads + SSLSocket.recv_into",
    OURS: "the body reader of azcp_runtime, its policies included",
    "storage-blob tuned": "azure-storage-blob, 16 MiB chunks, 1 MiB blocks, 8 at once",
    DEFAULT: "azure-storage-blob's defaults, 8 threads with a range each",
    "storage-blob default": "azure-storage-blob's defaults, one download_blob().readinto()",
}
_BLOB: Final = "set/large-000.bin"
_AIM_BARE: Final = 1.15
_AIM_DEFAULT: Final = 0.5


def measure(*, quick: bool = False) -> list[Table]:
    """CPU seconds per GiB of each candidate, medians of interleaved repeats."""
    repeats, rounds = (3, 1) if quick else (5, 2)
    size_bytes = 512 * MIB if quick else GIB
    with tempfile.TemporaryDirectory(prefix="azcp-bench-") as name:
        folder = Path(name)
        root = folder / "root"
        write_large_files(container_folder(root) / "set", 1, size_bytes)
        with serve(folder / "http", root) as plain, serve(folder / "https", root, tls=True) as tls:
            seconds: dict[str, list[float]] = {candidate: [] for candidate in _CANDIDATES}
            for _ in range(repeats):
                for candidate, taken in seconds.items():
                    account = plain if candidate == FLOOR else tls
                    taken.append(_cpu_seconds(candidate, account, size_bytes, rounds))
    gib = size_bytes * rounds / GIB
    per_gib = {candidate: statistics.median(taken) / gib for candidate, taken in seconds.items()}
    spread = {candidate: (max(t) - min(t)) / gib for candidate, t in seconds.items()}
    return [_table(per_gib, spread, f"{gib:g} GiB a run, {repeats} interleaved runs")]


def _cpu_seconds(candidate: str, account: Account, size_bytes: int, rounds: int) -> float:
    script = str(Path(__file__).with_name("readers.py"))
    arguments = [candidate, f"{account.url}/{_BLOB}", str(size_bytes), str(rounds)]
    certificate = [str(account.certificate)] if account.certificate else []
    done = subprocess.run(
        [sys.executable, script, *arguments, *certificate], stdout=subprocess.PIPE, text=True, check=True
    )
    seconds: float = json.loads(done.stdout)["cpu_s"]
    return seconds


def _table(per_gib: dict[str, float], spread: dict[str, float], how: str) -> Table:
    ours = per_gib[OURS]
    aims = {
        BARE: at_most(ours / per_gib[BARE], _AIM_BARE, " x"),
        DEFAULT: at_most(ours / per_gib[DEFAULT], _AIM_DEFAULT, " x"),
    }
    rows = []
    for name, cost in sorted(per_gib.items(), key=lambda item: item[1]):
        figures = (f"{cost:.2f}", f"{spread[name]:.2f}", f"{ours / cost:.2f}")
        rows.append((name, *figures, aims.get(name, ""), _CANDIDATES[name]))
    return Table(
        "(b) client CPU seconds per GiB, 16 MiB ranges, 8 connections, page-aligned buffers, TLS 1.3",
        ("reader", "s/GiB", "spread", "ours/it", "aim for ours/it", "what it is"),
        tuple(rows),
        (f"median of {how}; user + system of the client's process after its first range, nginx on loopback",),
    )
