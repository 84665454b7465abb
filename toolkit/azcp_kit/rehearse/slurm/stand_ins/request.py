"""The command line of srun as the stand-in understands it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_SHORT: Final = {
    "-N": "nodes", "-n": "ntasks", "-w": "nodelist", "-K": "kill-on-bad-exit", "-W": "wait",
    "-l": "label", "-D": "chdir", "-c": "cpus-per-task", "-t": "time", "-J": "job-name", "-o": "output",
    "-e": "error", "-i": "input", "-p": "partition", "-A": "account", "-x": "exclude", "-m": "distribution",
    "-Q": "quiet", "-v": "verbose", "-u": "unbuffered", "-O": "overcommit", "-s": "oversubscribe",
    "-G": "gpus", "-C": "constraint",
}  # fmt: skip
_FLAGS: Final = frozenset(
    {
        "label", "quiet", "verbose", "unbuffered", "overcommit", "oversubscribe", "exclusive", "exact",
        "overlap", "multi-prog", "pty", "no-kill", "kill-on-bad-exit", "container-writable",
        "container-readonly", "container-entrypoint", "no-container-entrypoint", "container-mount-home",
        "no-container-mount-home", "container-remap-root", "no-container-remap-root", "whole",
    }
)  # fmt: skip


class RefusedError(Exception):
    """What srun would not do here."""


@dataclass(frozen=True, slots=True)
class Step:
    """What srun is asked for.

    Args:
        nodes: on which it runs.
        tasks: by the index of the node that each is on, in the order of their ranks.
        options: all that were given.
        words: of the tasks.
    """

    nodes: tuple[str, ...]
    tasks: tuple[int, ...]
    options: Mapping[str, str]
    words: tuple[str, ...]

    @property
    def kills_on_bad_exit(self) -> bool:
        """Whether one task that fails ends the others."""
        return self.options.get("kill-on-bad-exit", "0") != "0"

    @property
    def wait_s(self) -> float | None:
        """How long the others may go on after the first has ended; None for ever."""
        text = self.options.get("wait", "0")
        return float(text) if text.isdecimal() and int(text) else None


def read_step(argv: Sequence[str], env: Mapping[str, str], names: Sequence[str]) -> Step:
    """Read it, as srun does inside a job: what is not asked for comes from the job's variables.

    Raises:
        RefusedError: it cannot be had on these nodes.
    """
    options, words = split(argv)
    if not words:
        raise RefusedError("srun: fatal: No command given to execute.")
    if options.get("mpi", "none") not in ("none", "openmpi"):
        raise RefusedError(f"srun: error: Couldn't find the specified plugin name for mpi/{options['mpi']}")
    if "multi-prog" in options or "pty" in options:
        raise RefusedError("srun: error: the rehearsal has no --multi-prog and no --pty")
    chosen = _nodes(options, env, names)
    return Step(chosen, _tasks(options, env, len(chosen)), options, tuple(words))


def split(argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The options by their long names, and what is left."""
    options: dict[str, str] = {}
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "-":
        word = argv[at]
        at += 1
        if word == "--":
            break
        if word.startswith("--"):
            name, sign, value = word[2:].partition("=")
        else:
            name, value = _SHORT.get(word[:2], word[1:2]), word[2:].removeprefix("=")
            sign = value
        if not sign and name not in _FLAGS and at < len(argv):
            value = argv[at]
            at += 1
        options[name] = value or "1"
    return options, list(argv[at:])


def _nodes(options: Mapping[str, str], env: Mapping[str, str], names: Sequence[str]) -> tuple[str, ...]:
    asked = options.get("nodelist", "")
    # Ranges come from scontrol's stand-in as they are; names alone are all that a step needs here.
    wanted = [name for name in names if name in asked.split(",")] if asked else list(names)
    if asked and len(wanted) != len(asked.split(",")):
        raise RefusedError(f"srun: error: the job has no nodes {asked}")
    text = options.get("nodes", "").partition("-")[0] or ("" if asked else env.get("SLURM_NNODES", ""))
    if text and not text.isdecimal():
        raise RefusedError(f"srun: error: Invalid numeric value {text!r} for --nodes")
    count = int(text or len(wanted))
    tasks = options.get("ntasks", "")
    if "nodes" not in options and tasks.isdecimal():
        count = min(count, int(tasks))
    if not 0 < count <= len(wanted):
        raise RefusedError(
            "srun: error: Unable to create step: More nodes requested than in the job's allocation"
        )
    return tuple(wanted[:count])


def _tasks(options: Mapping[str, str], env: Mapping[str, str], nodes: int) -> tuple[int, ...]:
    per_node = options.get("ntasks-per-node", "")
    asked = options.get("ntasks", "")
    if not asked and not per_node and "nodes" not in options:
        asked = env.get("SLURM_NTASKS", "")
    if not asked and not per_node:
        per_node = env.get("SLURM_NTASKS_PER_NODE", "1")
    for text in (per_node, asked):
        if text and not text.isdecimal():
            raise RefusedError(f"srun: error: Invalid numeric value {text!r}")
    count = int(asked) if asked else int(per_node) * nodes
    if count < nodes:
        raise RefusedError(f"srun: error: {count} tasks cannot be on {nodes} nodes")
    # By blocks, as Slurm does it; the first nodes have one more where it does not come out even.
    least, more = divmod(count, nodes)
    return tuple(node for node in range(nodes) for _ in range(least + (node < more)))
