"""Everything that is known of one node before MPI comes up, and the checks that follow from it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from azcp_runtime.doctor.check import Check, Status
from azcp_runtime.doctor.fabric_ports import check_devices, check_gids, check_named_devices
from azcp_runtime.doctor.libraries import UcxAnswer, VerbsAnswer, ask_ucx, ask_verbs, find_stack
from azcp_runtime.doctor.options import DoctorOptions
from azcp_runtime.doctor.privileges import Privileges, check_memlock, read_privileges
from azcp_runtime.doctor.processor import (
    Processor,
    check_memory,
    check_page_size,
    check_processor,
    read_processor,
)
from azcp_runtime.doctor.providers import check_providers
from azcp_runtime.doctor.shared_memory import SharedMemory, check_shared_memory, read_shared_memory
from azcp_runtime.doctor.transport import check_transport
from azcp_runtime.options import DEFAULT_MEMORY_BYTES
from azcp_runtime.preflight.wish import fabric_wish
from azcp_runtime.rails.devices import Devices, read_devices

_INTERFACES: Final = "/sys/class/net"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What was read on one node.

    Attributes:
        interfaces: names of its network interfaces; the other fields say their own.
    """

    processor: Processor
    shared_memory: SharedMemory
    privileges: Privileges
    devices: Devices
    interfaces: tuple[str, ...]
    verbs: VerbsAnswer
    ucx: UcxAnswer


def read_node(env: Mapping[str, str]) -> NodeFacts:
    """Read all of it; nothing here needs MPI.

    Args:
        env: the environment, which says which MPI library a run loads.
    """
    stack = find_stack(env)
    return NodeFacts(
        read_processor(),
        read_shared_memory(),
        read_privileges(),
        read_devices(),
        read_interfaces(),
        ask_verbs(stack),
        ask_ucx(stack),
    )


def check_node(
    facts: NodeFacts, options: DoctorOptions, rails: int, env: Mapping[str, str], pml: str
) -> Iterator[Check]:
    """The checks of one node, in the order in which they explain each other.

    Args:
        facts: of `read_node`.
        options: the command line.
        rails: ranks on this node.
        env: the environment.
        pml: what Open MPI has chosen; empty where it is not up.
    """
    yield check_processor(facts.processor, rails)
    yield check_memory(facts.processor, rails)
    yield check_page_size(facts.processor)
    yield check_shared_memory(facts.shared_memory, rails, options.shm)
    for check in _fabric(facts, options, rails, env, pml):
        is_fine = options.allow_tcp and check.status is Status.WARN
        yield replace(check, status=Status.OK, remedy="") if is_fine else check


def _fabric(
    facts: NodeFacts, options: DoctorOptions, rails: int, env: Mapping[str, str], pml: str
) -> Iterator[Check]:
    wish = fabric_wish(facts.devices, env, required=options.require_rdma, allowed=options.allow_tcp)
    required = wish.is_required
    # What azcp-distribute takes for its buffers where --memory does not say it.
    buffers = min(DEFAULT_MEMORY_BYTES, facts.processor.memory_bytes // 8 // rails)
    has_rdma = bool(facts.devices.usable())
    yield check_memlock(facts.privileges, buffers, is_required=required, has_rdma=has_rdma)
    yield check_devices(facts.devices, is_required=required)
    yield from check_gids(facts.devices, env)
    yield from check_named_devices(facts.devices, facts.interfaces, env)
    yield check_providers(facts.verbs, facts.devices, is_required=required)
    yield check_transport(pml, facts.ucx, is_required=required)


def read_interfaces() -> tuple[str, ...]:
    """The names of this node's network interfaces."""
    try:
        return tuple(os.listdir(_INTERFACES))
    except OSError:  # sysfs may be hidden from a container
        return ()
