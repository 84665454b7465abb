"""What the two phases of a job start on each node, as argument lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.isolate import command, handed_names

ALONE: Final = "localhost"
"""The name of a job's only node, where none was given."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a job in the order of their ranks.

    Args:
        addresses: by the name that the user gave.
        hostfile: where they are written down for mpirun.
        own: which of them this node is; empty where it is none of them.
    """

    addresses: Mapping[str, str]
    hostfile: Path
    own: str = ""

    @property
    def master(self) -> str:
        """The first one, as the user calls it."""
        return next(iter(self.addresses))

    @property
    def others(self) -> Mapping[str, str]:
        """All but this node."""
        return {host: address for host, address in self.addresses.items() if host != self.own}


def hostfile_text(nodes: Nodes) -> str:
    """One line per node, by address: short names of two domains may be equal, and addresses were checked."""
    return "".join(f"{address} slots=1\n" for address in nodes.addresses.values())


def distribute_arguments(
    nodes: Nodes, distribute: Sequence[str], env: Mapping[str, str], rails: int = 1
) -> list[str]:
    """Phase 1, for mpirun: the launcher's credentials and options by name.

    Args:
        nodes: all of them.
        distribute: the command line of azcp-distribute.
        env: the launcher's.
        rails: ranks on each node.
    """
    exported = [word for name in handed_names(env) for word in ("-x", name)]
    return [*_everywhere(nodes, rails), *exported, *command("azcp-distribute", distribute)]


def survey_arguments(nodes: Nodes) -> list[str]:
    """For mpirun: each node says how many rails it can have."""
    return [*_everywhere(nodes, 1), *command("azcp-rails")]


def _everywhere(nodes: Nodes, ranks: int) -> list[str]:
    """So many processes on each node, one node after the other."""
    count = str(len(nodes.addresses) * ranks)
    mapped = ("--map-by", f"ppr:{ranks}:node")
    return ["--quiet", "-np", count, "--hostfile", str(nodes.hostfile), *mapped]


def expectation(distribute: Sequence[str], ranks: int) -> list[str]:
    """The size that the world must have, unless the user says something about it."""
    said = any(word.split("=")[0] in ("--expect-ranks", "--no-broadcast") for word in distribute)
    return [] if said else ["--expect-ranks", str(ranks)]


def step_argv(nodes: Nodes, rank: int, master_port: int, words: Sequence[str]) -> list[str]:
    """Phase 2, for one node: the user's command, and the node's place in the job.

    mpirun does not start this phase: it gives a command one second to end, puts its own node first whatever
    the order of the ranks, and its variables would have to be taken out again.

    Args:
        nodes: all of them.
        rank: which of them this one is.
        master_port: on which the first node's program may wait for the others.
        words: the user's command.
    """
    place = (str(rank), str(len(nodes.addresses)), nodes.master, str(master_port))
    return command("azcp-step", (*place, *words))
