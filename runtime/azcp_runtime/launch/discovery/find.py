"""All ways to find the nodes of a job, in their order, and what is wrong with what they found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from azcp_runtime.contract import UsageError
from azcp_runtime.launch.discovery.operator import Operator
from azcp_runtime.launch.discovery.service import Service
from azcp_runtime.launch.discovery.slurm import Slurm
from azcp_runtime.launch.discovery.surveyed import Surveyed
from azcp_runtime.launch.discovery.volcano import Volcano
from azcp_runtime.launch.hosts import Discovery, Found, InFile, Listed
from azcp_runtime.launch.index import own_index
from azcp_runtime.launch.options import Launch

ALONE: Final = Found("alone", ())
"""No way applied: the job is this node."""


def discover(launch: Launch, node: Surveyed) -> Found:
    """The nodes of the job; ALONE where nothing says that there are others.

    Raises:
        UsageError: the command line says that there are others, or how many, and it is not so.
    """
    service = Service(node, launch.nodes)
    ways = (
        *(Listed(launch.hosts), InFile(launch.hostfile), Slurm(node.env), Operator(node.env)),
        *(Volcano(node, launch.is_every_node), service),
    )
    found = first_of(ways)
    if launch.is_every_node and found.hosts and found.own is None:
        found = Found(found.way, found.hosts, own_index(node.env, node.name, found.hosts))
    problems = _contradictions(launch, found, ways)
    if problems:
        raise UsageError("; ".join(problems), remedy="see azcp-launch --help")
    return found


def first_of(ways: Sequence[Discovery]) -> Found:
    """What the first way says that applies."""
    for way in ways:
        found = way.find()
        if found is not None:
            return found
    return ALONE


def describe(found: Found, launch: Launch, node: Surveyed) -> str:
    """One line: how many nodes, how they were found, and which of them this is."""
    if not found.hosts:
        hint = ", though it may be one of several: --nodes N says so" if Service(node, None).is_likely else ""
        return f"this node alone: nothing names others{hint if launch.nodes is None else ''}"
    count = f"{len(found.hosts)} node{'s' if len(found.hosts) > 1 else ''}"
    role = ", each with an azcp-sshd"
    if found.own is not None:
        leads = "leads" if found.own == 0 else f"follows {found.hosts[0]}"
        role = f"; this is number {found.own}, {found.hosts[found.own]}, and {leads}"
    return f"{count} by {found.way}{role}"


def _contradictions(launch: Launch, found: Found, ways: Sequence[Discovery]) -> Sequence[str]:
    count = max(1, len(found.hosts))
    sought = "; ".join(way.sought for way in ways)
    rules = (
        (
            launch.nodes not in (None, count) and not found.hosts,
            f"--nodes says {launch.nodes}, and nothing names them; looked at: {sought}",
        ),
        (
            launch.nodes not in (None, count) and bool(found.hosts),
            f"--nodes says {launch.nodes}, {found.way} has {count}",
        ),
        (
            launch.is_every_node and not found.hosts and launch.nodes in (None, 1),
            f"--every-node, and nothing names the nodes; looked at: {sought}",
        ),
        (
            launch.alone_after_s is not None and found.own is None and bool(found.hosts),
            f"--alone-after needs --every-node: by {found.way} this node only starts the others",
        ),
        (
            launch.alone_after_s is not None and not found.hosts and not launch.is_every_node,
            f"--alone-after, and nothing names the nodes; looked at: {sought}",
        ),
        (
            launch.node_file is not None and found.own is None and bool(found.hosts),
            f"--node-file needs --every-node: by {found.way} this node only starts the others",
        ),
    )
    return [text for is_broken, text in rules if is_broken]
