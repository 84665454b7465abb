"""Compares what a job has left on the nodes of a Slurm, by a step that reads it there, and takes it away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PreflightError

from azcp_kit.rehearse.cargo import Cargo, file_differences
from azcp_kit.rehearse.outcome import NodeData
from azcp_kit.rehearse.slurm.site import run_slurm
from azcp_kit.shown import shown

_STEP_S: Final = 240.0
_MINUTES: Final = 5
# Into a file for each node: what several tasks print at once, srun mixes.
_READ: Final = """
if cd -- "$1" 2>/dev/null; then
    find . -type f -exec sha256sum -z -- {} + >"$2/$SLURMD_NODENAME.part"
else
    printf 'x  ./\\0' >"$2/$SLURMD_NODENAME.part"
fi
mv -- "$2/$SLURMD_NODENAME.part" "$2/$SLURMD_NODENAME.sums"
cd /
rm -rf -- "$1"
"""
_ABSENT: Final = {"": "x"}


@dataclass(frozen=True, slots=True)
class Place:
    """What is compared.

    Args:
        nodes: as a host list.
        path: on each of them; a folder of the rehearsal's own.
        folder: that all nodes share.
        admission: options that let a step run there.
    """

    nodes: str
    path: str
    folder: Path
    admission: Sequence[str]


def compare_nodes(place: Place, cargo: Cargo, title: str) -> tuple[NodeData, ...]:
    """How each node's data differs from the data set; afterwards it is gone.

    Raises:
        PreflightError: the nodes do not take the step.
    """
    names = host_names(place.nodes)
    found = _digests(place, names)
    return tuple(
        NodeData(title, shown(name), shown(place.path), _differences(cargo, found.get(name)))
        for name in names
    )


def host_names(nodes: str) -> tuple[str, ...]:
    """The names in a host list.

    Raises:
        PreflightError: scontrol does not tell.
    """
    ended = run_slurm(["scontrol", "show", "hostnames", nodes])
    if ended.returncode:
        raise PreflightError("scontrol does not tell the job's nodes", cause=shown(ended.stderr.strip()))
    return tuple(ended.stdout.split())


def _digests(place: Place, names: Sequence[str]) -> dict[str, dict[str, str]]:
    count = len(names)
    asked = (
        f"--nodelist={place.nodes}",
        f"--nodes={count}",
        f"--ntasks={count}",
        "--ntasks-per-node=1",
        f"--time={_MINUTES}",
        "--job-name=azcp-rehearsal",
        "--mpi=none",
        *place.admission,
    )
    argv = ["srun", "--quiet", *asked, "sh", "-c", _READ, "digest", place.path, str(place.folder)]
    ended = run_slurm(argv, timeout_s=_STEP_S)
    found = {name: place.folder / f"{name}.sums" for name in names}
    read = {name: parse_sums(file.read_bytes()) for name, file in found.items() if file.exists()}
    if ended.returncode and not read:
        raise PreflightError(
            "the nodes do not take a step that compares the data",
            cause=shown(ended.stderr.strip(), 400),
            remedy=f"remove {shown(place.path)} on them by hand",
        )
    return read


def parse_sums(content: bytes) -> dict[str, str]:
    """What `sha256sum -z` has written, by the files' names."""
    found = {}
    for entry in content.split(b"\0"):
        digest, _, name = entry.decode(errors="surrogateescape").partition("  ")
        if digest:
            found[name.removeprefix("./")] = digest
    return found


def _differences(cargo: Cargo, found: Mapping[str, str] | None) -> tuple[str, ...]:
    if found is None:
        return ("it was not read there",)
    return ("there is no such folder",) if found == _ABSENT else file_differences(cargo, found)
