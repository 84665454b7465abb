"""Which outlet and which CPUs a rank of a node gets; pure, so that each rank finds the same for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from azcp_runtime.rails.facts import NodeFacts, Outlet
from azcp_runtime.rails.topology import written_cpus
from azcp_runtime.rails.wish import NONE, RailWish

ENV_TCP_INCLUDE: Final = "OMPI_MCA_btl_tcp_if_include"
_FEWEST_CPUS_PER_RANK: Final = 2
"""One for MPI's progress, one for TLS and writes."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What one rank uses.

    Attributes:
        rail: which of the node's ranks it is.
        outlet: where it sends; None leaves that to MPI.
        cpus: what it keeps to; empty for all of them.
        gid_index: what UCX is told; None where nothing.
        trouble: why this node cannot have these rails; empty where it can.
    """

    rail: int
    outlet: Outlet | None = None
    cpus: frozenset[int] = field(default_factory=frozenset)
    gid_index: int | None = None
    trouble: str = ""


def count_rails(facts: NodeFacts) -> tuple[int, str]:
    """How many rails are good for a node, and why so many."""
    hcas, cpus = len(facts.hcas()), len(facts.allowed)
    fed = max(1, cpus // _FEWEST_CPUS_PER_RANK)
    if not hcas:
        return 1, "no HCA that can be used"
    found = f"{hcas} HCA{'s' if hcas > 1 else ''}"
    return (fed, f"{found}, but {cpus} CPUs") if fed < hcas else (hcas, found)


def choose(facts: NodeFacts, wish: RailWish, rail: int, rails: int) -> Binding:
    """The binding of one rank.

    Args:
        facts: of its node.
        wish: what is said instead of found.
        rail: which of the node's ranks it is.
        rails: how many they are.
    """
    outlets, trouble = _outlets(facts, wish, rails)
    trouble = trouble or "; ".join(wish.problems(rails))
    if trouble:
        return Binding(rail, trouble=trouble)
    outlet = outlets[rail] if outlets else None
    cpus, trouble = _cpus(facts, wish, rail, outlet)
    return Binding(rail, outlet, cpus, _gid_index(wish, outlet), trouble)


def _outlets(facts: NodeFacts, wish: RailWish, rails: int) -> tuple[Sequence[Outlet], str]:
    """One per rail, or none at all; and what stands against it."""
    if wish.devices:
        named = {name: facts.named(name) for name in wish.devices}
        missing = [name for name, outlet in named.items() if outlet is None]
        if missing:
            return (), f"no {', '.join(missing)}"
        return [outlet for name in wish.devices if (outlet := named[name])], ""
    hcas = facts.hcas()
    if not hcas:
        return (), ""
    if len(hcas) < rails:
        return (), f"{len(hcas)} HCA{'s' if len(hcas) > 1 else ''} that can be used"
    return spread(hcas, rails, facts.front_numa_node()), ""


def spread(outlets: Sequence[Outlet], count: int, front: int) -> list[Outlet]:
    """So many of them, from each NUMA node in turn: first from that of the front network."""
    by_node: dict[int, list[Outlet]] = {}
    for outlet in outlets:
        by_node.setdefault(outlet.numa_node, []).append(outlet)
    turns = [by_node[node] for node in sorted(by_node, key=lambda node: (node != front, node < 0, node))]
    in_turn = [turn[at] for at in range(len(outlets)) for turn in turns if at < len(turn)]
    chosen = set(in_turn[:count])
    return [outlet for outlet in outlets if outlet in chosen]


def _cpus(facts: NodeFacts, wish: RailWish, rail: int, outlet: Outlet | None) -> tuple[frozenset[int], str]:
    """Those that are said, else those near to the outlet, as far as they are allowed."""
    if wish.cpus is not None:
        said = frozenset(wish.cpus[rail] if wish.cpus else ())
        if said - facts.allowed:
            return frozenset(), f"CPUs {written_cpus(said - facts.allowed)} are not allowed here"
        return said, ""
    near = facts.numa_cpus.get(outlet.numa_node, frozenset()) if outlet else frozenset()
    kept = near & facts.allowed
    # All of them is no pinning, but what the rank has anyway.
    return (frozenset() if kept == facts.allowed else kept), ""


def _gid_index(wish: RailWish, outlet: Outlet | None) -> int | None:
    if outlet is None or outlet.is_interface or wish.gid_index == NONE:
        return None
    return outlet.gid_index if wish.gid_index is None else wish.gid_index


def settings(binding: Binding) -> Mapping[str, str]:
    """What MPI must find in the environment before it starts."""
    outlet = binding.outlet
    if outlet is None:
        return {}
    found = {"UCX_NET_DEVICES": outlet.name}
    if binding.gid_index is not None:
        found["UCX_IB_GID_INDEX"] = str(binding.gid_index)
    if outlet.is_interface:  # for Open MPI's own TCP
        found[ENV_TCP_INCLUDE] = outlet.name
    return found
