"""(c) Many small files from a directory to simulated nodes, against one MPI_Ibcast per file."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dataset import KIB, differing_names, write_small_files
from launch import RunFailedError, distribute, mpirun, run
from table import Table, at_least

_NODES: Final = 4
_SIZE_BYTES: Final = 8 * KIB
_AIM: Final = 5.0
_MEMORY_DISK: Final = Path("/dev/shm")  # noqa: S108 - a file system to measure on, the files get a folder of their own

_OURS: Final = "azcp-distribute"
_FSYNCED: Final = "one Ibcast per file, fsync each"
_UNSYNCED: Final = "one Ibcast per file, no fsync"
_FLOOR: Final = "files alone, no MPI, no source"


def measure(*, quick: bool = False) -> list[Table]:
    """A table for a disk and one for a file system in memory."""
    count = 4_000 if quick else 20_000
    # ext4 searches past inodes that were deleted within the last minutes, so that removing one
    # candidate's files would make the next one slower: on a disk all of them stay to the end.
    tables = [_measure_on("disk", Path(tempfile.gettempdir()), count, repeats=1, keep=True)]
    if _MEMORY_DISK.is_dir():
        repeats = 1 if quick else 3
        tables.append(_measure_on("memory", _MEMORY_DISK, count, repeats=repeats, keep=False))
    return tables


def _measure_on(kind: str, disk: Path, count: int, *, repeats: int, keep: bool) -> Table:
    seconds: dict[str, list[float]] = {name: [] for name in _CANDIDATES}
    with tempfile.TemporaryDirectory(prefix="azcp-bench-", dir=disk) as name:
        source = Path(name, "source")
        write_small_files(source, count, _SIZE_BYTES)
        for repeat in range(repeats):
            for number, (candidate, distributed) in enumerate(_CANDIDATES.items()):
                dest = Path(name, f"dest{repeat}-{number}")
                dest.mkdir()
                os.sync()
                seconds[candidate].append(distributed(source, dest))
                if candidate == _OURS:
                    _compare(source, dest)
                if not keep:
                    shutil.rmtree(dest)
    medians = {candidate: statistics.median(taken) for candidate, taken in seconds.items()}
    return _table(kind, medians, count, repeats)


def _ours(source: Path, dest: Path) -> float:
    launcher = mpirun(_NODES)
    return distribute(launcher, str(source), dest, [], {"AZCP_SIMULATE_NODES": str(_NODES)}).total_s


def _reference(script: str, source: Path, dest: Path, *options: str) -> float:
    program = [sys.executable, str(Path(__file__).with_name(script)), str(source), str(dest), *options]
    seconds: float = json.loads(run([*mpirun(_NODES), *program], {}))["seconds"]
    return seconds


def _compare(source: Path, dest: Path) -> None:
    for node in range(_NODES):
        if names := differing_names(source, dest / f"node{node}"):
            raise RunFailedError(f"node{node} differs in {len(names)} files, the first is {names[0]}")


_CANDIDATES: Final[dict[str, Callable[[Path, Path], float]]] = {
    _OURS: _ours,
    _UNSYNCED: lambda source, dest: _reference("ibcast_per_file.py", source, dest),
    _FSYNCED: lambda source, dest: _reference("ibcast_per_file.py", source, dest, "--fsync"),
    _FLOOR: lambda source, dest: _reference("files_alone.py", source, dest),
}


def _table(kind: str, medians: dict[str, float], count: int, repeats: int) -> Table:
    ours = medians[_OURS]
    aims = {
        _FSYNCED: at_least(medians[_FSYNCED] / ours, _AIM, " x"),
        _UNSYNCED: at_least(medians[_UNSYNCED] / ours, _AIM, " x"),
    }
    rows = (
        (name, f"{taken:.2f}", f"{count / taken:,.0f}", f"{taken / ours:.2f}", aims.get(name, ""))
        for name, taken in sorted(medians.items(), key=lambda item: item[1])
    )
    what = f"{count:,} files of {_SIZE_BYTES // KIB} KiB from a directory"
    return Table(
        f"(c) {what} to {_NODES} simulated nodes, on {kind}",
        ("what", "seconds", "files/s", "it/ours", "aim for it/ours"),
        tuple(rows),
        (
            f"median of {repeats} interleaved runs, listing to last rename, on one file system for all nodes",
            f"{_OURS}: a syncfs for each batch of files before their renames, one for the folders at the end",
            f"{_FLOOR}: {_NODES} processes create, write and rename the same files from memory, no fsync",
        ),
    )
