"""The table [slurm] of a job.toml: what sbatch is asked for, and how a container gets at its files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from azcp_runtime.contract.units import parse_size

from azcp_kit.spec.durations import parse_duration
from azcp_kit.spec.reader import Reader

_GRACE_S: Final = 120
_IMAGE_BYTES: Final = 20 << 30
_MOST_CPUS: Final = 4096
_MOST_TASKS: Final = 1024
_OPTION: Final = re.compile(r"[A-Za-z0-9_.,:/+@%=-]+", re.ASCII)
_CONSTRAINT: Final = re.compile(r"[A-Za-z0-9_.,:/+@%=&|*!()\[\]-]+", re.ASCII)
_FLAG: Final = re.compile(r"[a-z0-9_=-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of the node that a container sees.

    Args:
        source: its path on the node.
        target: its path in the container.
        flags: mount options, such as ro.
    """

    source: str
    target: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Slurm:
    """What only Slurm knows; an empty text or 0 leaves it to the site.

    Args:
        partition: --partition.
        account: --account.
        qos: --qos.
        constraint: --constraint.
        reservation: --reservation.
        images: the shared folder of .sqsh and .sif files.
        image_bytes: how large an image is thought to be before it is there.
        stage: copy the image file to the node's own disk first.
        sas_file: a file with a SAS, that all nodes see.
        mounts: further ones.
        grace_s: time between the signal and the time limit.
        cpus_per_task: --cpus-per-task.
        tasks_per_node: of an MPI program.
        gpus: per node.
    """

    partition: str
    account: str
    qos: str
    constraint: str
    reservation: str
    images: str
    image_bytes: int
    stage: bool
    sas_file: str
    mounts: tuple[Mount, ...]
    grace_s: int
    cpus_per_task: int
    tasks_per_node: int
    gpus: int


def read_slurm(table: Reader, gpus: int) -> Slurm:
    """The table.

    Args:
        table: its reader.
        gpus: how many a node has where it does not say.
    """
    slurm = Slurm(
        partition=table.text("partition", check=_option),
        account=table.text("account", check=_option),
        qos=table.text("qos", check=_option),
        constraint=table.text("constraint", check=_constraint),
        reservation=table.text("reservation", check=_option),
        images=table.text("images", check=_path),
        image_bytes=table.parsed("image-size", _IMAGE_BYTES, parse_size),
        stage=table.flag("stage"),
        sas_file=table.text("sas-file", check=_path),
        mounts=tuple(_mount(reader) for reader in table.tables("mounts")),
        grace_s=table.parsed("grace", _GRACE_S, parse_duration),
        cpus_per_task=table.whole("cpus-per-task", 0, least=1, most=_MOST_CPUS),
        tasks_per_node=table.whole("tasks-per-node", 1, least=1, most=_MOST_TASKS),
        gpus=table.whole("gpus", gpus, most=64),
    )
    table.finish()
    return slurm


def _mount(table: Reader) -> Mount:
    source = table.text("source", "/x", check=_path, needed=True)
    flags = []
    for flag in table.words("flags"):
        if _FLAG.fullmatch(flag):
            flags.append(flag)
        else:
            table.problem("flags", f"{flag!r} is no mount option such as ro or nosuid")
    mount = Mount(source, table.text("target", source, check=_path), tuple(flags))
    table.finish()
    return mount


def _option(text: str) -> str:
    return (
        ""
        if _OPTION.fullmatch(text)
        else "is no name that Slurm has: letters, digits, and _.,:/+@%=- are what it may hold"
    )


def _constraint(text: str) -> str:
    return (
        ""
        if _CONSTRAINT.fullmatch(text)
        else "is no constraint: names of features joined by & and |, in brackets or not"
    )


def _path(text: str) -> str:
    path = PurePosixPath(text)
    if not path.is_absolute():
        return "is not absolute"
    return "holds .." if ".." in path.parts else ""
