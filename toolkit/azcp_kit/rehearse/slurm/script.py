"""A batch script as a rehearsal sees it: what it asks Slurm for, what it distributes, and what it runs in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import UsageError

from azcp_kit.lint.sbatch import Batch, read_batch
from azcp_kit.rehearse.account import Source, find_distribution, find_sources, sas_files
from azcp_kit.shown import shown

_IMAGE_FILE: Final = re.compile(r"/\S+\.(?:sqsh|squashfs|sif)")
_STAGED: Final = "/.azcp-images/"
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")
_KEPT: Final = ("partition", "account", "qos", "reservation", "constraint")
_PACKS: Final = re.compile(r"^\s*#SBATCH\s+(?:hetjob|packjob)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class BatchScript:
    """A batch script.

    Args:
        text: as it is.
        name: of the job.
        nodes: that it asks for.
        tasks_per_node: the same.
        sources: the places in accounts that it names.
        source, destination: what azcp-launch or azcp-distribute in it is told; empty where nobody can tell.
        sas_files: files that hold a shared access signature.
        image_files: files of images.
        admission: options of sbatch that decide where a job may run, for the steps beside it.
        containers: the tools by which it enters images.
        mpi: the kinds of --mpi that it asks srun for, but for none.
    """

    text: str
    name: str
    nodes: int
    tasks_per_node: int
    sources: tuple[Source, ...]
    source: str
    destination: str
    sas_files: tuple[str, ...]
    image_files: tuple[str, ...]
    admission: tuple[str, ...]
    containers: tuple[str, ...]
    mpi: tuple[str, ...]
    batch: Batch

    @property
    def title(self) -> str:
        """What it is called in an outcome."""
        return shown(f"sbatch {self.name}")

    def has(self, option: str) -> bool:
        """Whether sbatch reads that option from it."""
        return self.batch.directive(option) is not None


def is_batch_script(text: str) -> bool:
    """Whether sbatch would take it; a manifest has no line for the kernel."""
    return text.startswith("#!") and any(line.startswith("#SBATCH") for line in text.splitlines())


def read_script(text: str) -> BatchScript:
    """Read one.

    Raises:
        UsageError: it cannot be rehearsed, and why.
    """
    batch = read_batch(text)
    _expect_one_job(batch, text)
    nodes, tasks = _counts(batch)
    lines = [list(_words(batch, at)) for at in range(len(batch.script.commands))]
    told = next((found for found in map(find_distribution, lines) if found), None)
    every = [word for line in lines for word in line]
    return BatchScript(
        text=text,
        name=_directive(batch, "job-name") or "job",
        nodes=nodes,
        tasks_per_node=tasks,
        sources=find_sources(every),
        source=told.source if told else "",
        destination=told.destination.rstrip("/") if told else "",
        sas_files=tuple(dict.fromkeys(path for line in lines for path in sas_files(line))),
        image_files=tuple(dict.fromkeys(_image_files(every))),
        admission=tuple(
            f"--{option}={value}" for option in _KEPT if (value := _directive(batch, option)) is not None
        ),
        containers=tuple(_containers(text, every)),
        mpi=tuple(dict.fromkeys(_mpi(every))),
        batch=batch,
    )


def _words(batch: Batch, at: int) -> Iterator[str]:
    """The words of a command, variables that have one value put in place."""
    for word in batch.script.commands[at].words:
        value = batch.script.value(word)
        yield word.text if value is None else value


def _directive(batch: Batch, name: str) -> str | None:
    found = batch.directive(f"--{name}")
    return found.value if found else None


def _expect_one_job(batch: Batch, text: str) -> None:
    if batch.directive("--array") or _PACKS.search(text):
        raise UsageError(
            "job arrays and heterogeneous jobs are not rehearsed",
            remedy="rehearse a script with one job of one kind of node",
        )


def _counts(batch: Batch) -> tuple[int, int]:
    """The nodes, and the tasks on each."""
    tasks = _number(batch, "ntasks")
    per_node = _number(batch, "ntasks-per-node")
    asked = _directive(batch, "nodes")
    if asked is None:
        nodes = -(-tasks // per_node) if tasks and per_node else 1
        return nodes, per_node or tasks or 1
    match = _RANGE.fullmatch(asked)
    if match is None or (match[2] and match[2] != match[1]) or not int(match[1]):
        raise UsageError(
            f"the script asks for {shown(asked)} nodes", remedy="rehearse it with one number in --nodes"
        )
    nodes = int(match[1])
    return nodes, per_node or max(1, (tasks or nodes) // nodes)


def _number(batch: Batch, name: str) -> int:
    value = _directive(batch, name)
    return int(value) if value and value.isascii() and value.isdecimal() else 0


def _containers(text: str, words: list[str]) -> Iterator[str]:
    # Its options often lie in an array that is a part of another.
    if "--container-image" in text:
        yield "pyxis"
    programs = {word.rpartition("/")[2] for word in words}
    yield from (
        name for name in ("enroot", "apptainer", "singularity", "docker", "podman") if name in programs
    )


def _image_files(words: list[str]) -> Iterator[str]:
    for word in words:
        # Copies that the script makes itself have to be absent before.
        yield from (path for path in _IMAGE_FILE.findall(word) if _STAGED not in path)


def _mpi(words: list[str]) -> Iterator[str]:
    for word in words:
        option, _, value = word.partition("=")
        if option == "--mpi" and value not in ("", "none"):
            yield value
