"""(e) What a whole run costs: CPU per GiB and node by fetch, broadcast and write, and each rank's memory."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from account import serve
from dataset import GIB, KIB, MIB, differing_names, write_large_files, write_small_files
from launch import Run, RunFailedError, distribute, mpirun
from nginx import container_folder
from table import Table, at_most

if TYPE_CHECKING:
    from account import Account

_NODES: Final = 4
_SMALL_FILES: Final = 1000
_LARGE_FILES: Final = 4
_MEMORY_MIB: Final = 256
_CHUNK_MIB: Final = {2: 40, 4: 24, 8: 13}
"""Per number of ranks a chunk so large that the slots take nearly all of the memory allowed."""

_SLACK_MIB: Final = 200
_PARTS: Final = ("cpu_fetch_seconds", "cpu_bcast_seconds", "cpu_write_seconds")


def measure(*, quick: bool = False) -> list[Table]:
    """One table of CPU, one of memory."""
    size_bytes = 256 * MIB if quick else GIB
    with tempfile.TemporaryDirectory(prefix="azcp-bench-") as name:
        folder = Path(name)
        source = container_folder(folder / "root") / "set"
        write_large_files(source, _LARGE_FILES, size_bytes // _LARGE_FILES)
        write_small_files(source, _SMALL_FILES, 64 * KIB)
        data_bytes = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
        with serve(folder / "https", folder / "root", tls=True) as account:
            cost = _cost_table(_run(account, source, folder, _NODES, []), data_bytes)
            runs = [
                _run(account, source, folder, ranks, _full_memory(chunk))
                for ranks, chunk in _CHUNK_MIB.items()
            ]
    return [cost, _memory_table(runs, data_bytes)]


def _run(account: Account, source: Path, folder: Path, ranks: int, options: list[str]) -> Run:
    dest = folder / "dest"
    dest.mkdir()
    environment = {"AZCP_SIMULATE_NODES": str(ranks), "REQUESTS_CA_BUNDLE": str(account.certificate)}
    options = ["--auth", "anonymous", *options]
    run = distribute(mpirun(ranks), f"{account.url}/set", dest, options, environment)
    for node in range(ranks):
        if names := differing_names(source, dest / f"node{node}"):
            raise RunFailedError(f"node{node} differs in {', '.join(names[:5])}")
    shutil.rmtree(dest)
    return run


def _full_memory(chunk_mib: int) -> list[str]:
    return ["--memory", f"{_MEMORY_MIB}MiB", "--bcast-chunk", f"{chunk_mib}MiB"]


def _cost_table(run: Run, data_bytes: int) -> Table:
    gib = data_bytes / GIB
    parts = [run.sum_of(part) for part in _PARTS]
    whole = run.sum_of("cpu_seconds")
    named = {"fetch": parts[0], "broadcast": parts[1], "write": parts[2], "the rest": whole - sum(parts)}
    rows = [
        (name, f"{seconds:.2f}", f"{seconds / gib / _NODES:.3f}", f"{seconds / whole:.0%}")
        for name, seconds in {**named, "all": whole}.items()
    ]
    fetched = run.sum_of("fetched_bytes")
    return Table(
        f"(e) CPU seconds of a whole run, {gib:.2f} GiB over https to {_NODES} simulated nodes on one disk",
        ("part", "all ranks s", "s per GiB and node", "share"),
        tuple(rows),
        (
            f"source: nginx with TLS 1.3 on loopback; fetched {fetched / data_bytes:.4f} x the data set",
            f"a node fetches 1/{_NODES} of each GiB that it writes; the broadcast goes over shared memory",
            f"{run.total_s:.2f} s from listing to last rename; the rest: start of Python and MPI, listing",
        ),
    )


def _memory_table(runs: list[Run], data_bytes: int) -> Table:
    rows = []
    for (ranks, chunk_mib), run in zip(_CHUNK_MIB.items(), runs, strict=True):
        peaks = [rank["max_rss_bytes"] / MIB for rank in run.report["ranks"]]
        verdict = at_most(max(peaks), _MEMORY_MIB + _SLACK_MIB, " MiB")
        rows.append(
            (
                str(ranks),
                str(chunk_mib),
                f"{min(peaks):.0f}",
                f"{max(peaks):.0f}",
                verdict,
                f"{run.total_s:.2f}",
            )
        )
    return Table(
        f"(e) peak RSS of a rank with --memory {_MEMORY_MIB}MiB, {data_bytes / GIB:.2f} GiB over https",
        ("ranks", "chunk MiB", "least MiB", "most MiB", "aim", "run s"),
        tuple(rows),
        (
            "chunks so large that the slots take nearly all of --memory",
            "shared memory that MPI maps is counted in each rank",
        ),
    )
