"""The quick look at one node: what is wrong with it, and nothing of what is well."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from azcp_runtime.doctor.check import Check, Status
from azcp_runtime.doctor.fabric_ports import check_devices, check_gids, check_named_devices
from azcp_runtime.doctor.libraries import UcxAnswer, VerbsAnswer, ask_ucx, ask_verbs, find_stack
from azcp_runtime.doctor.node import read_interfaces
from azcp_runtime.doctor.place import check_place, read_place
from azcp_runtime.doctor.privileges import Privileges, check_memlock, read_privileges
from azcp_runtime.doctor.processor import Processor, check_page_size, read_processor
from azcp_runtime.doctor.providers import check_providers
from azcp_runtime.doctor.shared_memory import SharedMemory, check_shared_memory, read_shared_memory
from azcp_runtime.doctor.transport import check_transport, chosen_pml, mapped_libmpi, mapped_libucp
from azcp_runtime.options import DEFAULT_MEMORY_BYTES
from azcp_runtime.preflight.asked import Asked
from azcp_runtime.preflight.wish import Wish, fabric_wish
from azcp_runtime.rails.devices import Devices, read_devices

_UNASKED: Final = (VerbsAnswer((), (), (), "", ""), UcxAnswer("", (), "not asked"))


@dataclass(frozen=True, slots=True)
class QuickFacts:
    """What was read on one node; `pml` is what Open MPI has chosen, empty where it is not up."""

    processor: Processor
    shared_memory: SharedMemory
    privileges: Privileges
    devices: Devices
    interfaces: tuple[str, ...]
    verbs: VerbsAnswer
    ucx: UcxAnswer
    pml: str


def look(asked: Asked, env: Mapping[str, str]) -> list[Check]:
    """What is wrong with this node; to be called when MPI is up."""
    facts, wish = read_facts(asked, env)
    checks = [*judge(facts, asked, wish, env), *_place(asked.dest)]
    return [check for check in checks if check.status is not Status.OK]


def read_facts(
    asked: Asked, env: Mapping[str, str], sys_root: Path = Path("/sys"), dev_root: Path = Path("/dev")
) -> tuple[QuickFacts, Wish]:
    """What there is, and what is wanted of it; the libraries are asked only where RDMA is in question."""
    devices = read_devices(sys_root, dev_root)
    wish = fabric_wish(
        devices, env, required=asked.require_rdma, allowed=asked.allow_tcp, named=asked.rail_devices
    )
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    verbs, ucx = _UNASKED
    if _matters(asked, wish, devices):
        stack = find_stack(env, loaded=mapped_libucp(maps))
        verbs, ucx = ask_verbs(stack), ask_ucx(stack)
    facts = QuickFacts(
        read_processor(),
        read_shared_memory(),
        read_privileges(),
        devices,
        read_interfaces(),
        verbs,
        ucx,
        chosen_pml(mapped_libmpi(maps)),
    )
    return facts, wish


def judge(facts: QuickFacts, asked: Asked, wish: Wish, env: Mapping[str, str]) -> Iterator[Check]:
    """The checks that a run makes.

    Args:
        facts: of `read_facts`.
        asked: the run's options.
        wish: what it wants of the fabric.
        env: the environment.
    """
    yield check_page_size(facts.processor)
    yield _warned(check_shared_memory(facts.shared_memory, asked.rails, None))
    if _matters(asked, wish, facts.devices):
        checks = _fabric(facts, asked, wish, env)
        yield from _reasoned(checks, wish, asked) if wish.is_required else map(_warned, checks)


def _warned(check: Check) -> Check:
    """MPI is up, so that nothing is a failure but what was asked for and is not there."""
    return replace(check, status=Status.WARN) if check.status is Status.FAIL else check


def _reasoned(checks: Iterator[Check], wish: Wish, asked: Asked) -> Iterator[Check]:
    """The checks, the first that fails with the setting that asked for RDMA; an option is known to all."""
    told = asked.require_rdma
    for check in checks:
        if check.status is Status.FAIL and not told:
            told = True
            yield replace(check, found=f"{check.found} (RDMA: {wish.because})")
        else:
            yield check


def _fabric(facts: QuickFacts, asked: Asked, wish: Wish, env: Mapping[str, str]) -> Iterator[Check]:
    required = wish.is_required
    buffers = asked.memory or min(DEFAULT_MEMORY_BYTES, facts.processor.memory_bytes // 8 // asked.rails)
    has_rdma = bool(facts.devices.usable())
    yield check_memlock(facts.privileges, buffers, is_required=required, has_rdma=has_rdma)
    yield check_devices(facts.devices, is_required=required)
    yield from check_gids(facts.devices, env)
    yield from check_named_devices(facts.devices, facts.interfaces, env)
    yield check_providers(facts.verbs, facts.devices, is_required=required)
    yield check_transport(facts.pml, facts.ucx, is_required=required)


def _matters(asked: Asked, wish: Wish, devices: Devices) -> bool:
    """RDMA is in question where it was asked for, or could carry something and TCP is not as good."""
    return wish.is_required or (asked.has_peers and not wish.is_allowed and bool(devices.usable()))


def _place(dest: Path | None) -> Iterator[Check]:
    if dest is None:
        return
    # What keeps us from looking will keep the run from writing, and it says that better.
    with contextlib.suppress(OSError):
        yield check_place(read_place(_existing(dest)))


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(each for each in (folder, *folder.parents) if each.exists())
