"""Open MPI, UCX and NCCL settings, and the options of the distributor, in manifests and batch scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.rules.quantity import size_bytes
from azcp_kit.lint.settings import MPIRUN, Way, is_set
from azcp_kit.lint.setup import Setup
from azcp_kit.lint.shell import Command

OVERWRITTEN: Final = Rule(
    "K801-overwritten-by-operator",
    Severity.ERROR,
    why="mpi-operator appends its own value of this variable, and the later one counts; Open MPI 5 does not"
    " even read these names",
    fix="give it on mpirun's command line (-mca, --hostfile), and the port in ssh_config",
)
NOT_AS_ROOT: Final = Rule(
    "K802-mpirun-refuses-root",
    Severity.WARNING,
    why="mpirun refuses to start as root, which containers mostly are",
    fix="add --allow-run-as-root",
)
WRONG_COUNT: Final = Rule(
    "K803-number-of-ranks",
    Severity.ERROR,
    why="with more ranks than slots mpirun ends at once; with fewer, nodes stay without data",
    fix="leave -np out where a hostfile says it, or make the numbers equal",
)
NOT_ONE_PER_NODE: Final = Rule(
    "K804-not-one-rank-per-node",
    Severity.WARNING,
    why="azcp-cluster aborts unless each node has exactly one rank",
    fix="add --map-by ppr:1:node",
)
UCX_UNUSED: Final = Rule(
    "K805-ucx-not-chosen",
    Severity.WARNING,
    why="UCX_ variables have no effect unless Open MPI uses UCX: without being told it may take another way"
    " and say nothing",
    fix="add -mca pml ucx (OMPI_MCA_pml=ucx), which fails where UCX cannot work",
)
PRIVATE_LIBRARIES: Final = Rule(
    "K806-private-libraries-for-all",
    Severity.WARNING,
    why="whatever runs next loads these libraries instead of the image's: undefined symbols, another"
    " Open MPI",
    fix="do not export it; the programs in /opt/azcp/bin find their libraries by themselves, and another"
    " mpirun has --prefix",
)
FIXED_DEVICES: Final = Rule(
    "K807-fixed-device-names",
    Severity.WARNING,
    why="adapters are called otherwise on other VM sizes (mlx5_ib0), and one of the list may be an Ethernet"
    " function: a hang at the first message, or a slow path",
    fix="leave it out and let UCX and NCCL choose, or detect the active InfiniBand ports on each node",
)
FIXED_GID: Final = Rule(
    "K808-fixed-gid-index",
    Severity.WARNING,
    why="a GID index has a meaning on RoCE alone, and differs from node to node",
    fix="leave it out on InfiniBand; on RoCE look the RoCEv2 entry up on each node",
)
NO_EFFECT: Final = Rule(
    "K809-bcast-algorithm-without-effect",
    Severity.NOTE,
    why="the broadcast is MPI_Ibcast, which coll/tuned has no part in",
    fix="use coll_libnbc_ibcast_algorithm 1, if any",
)
HUGE_CHUNK: Final = Rule(
    "K810-bcast-chunk-too-large",
    Severity.ERROR,
    why="azcp-cluster sends a chunk as one message: at 2 GiB the count overflows, and at multiples of 4 GiB"
    " nothing is sent while all seems well, so that garbage is written",
    fix="keep --bcast-chunk at 1GiB or less",
)
PINNED_CONCURRENCY: Final = Rule(
    "K811-concurrency-pinned",
    Severity.NOTE,
    why="the right number depends on the VM size and on how many nodes read: too few waste the network, too"
    " many are throttled",
    fix="leave it out where the program finds one, as azcp-launch does",
)
HCOLL: Final = Rule(
    "K812-hcoll-not-disabled",
    Severity.NOTE,
    why="where the image has hcoll, it takes over the collectives and may hang at start",
    fix="add -mca coll_hcoll_enable 0",
)

_OPERATORS: Final = frozenset(
    {"OMPI_MCA_plm_rsh_args", "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_keep_fqdn_hostnames"}
)
_ROOT_ALLOWED: Final = frozenset({"--allow-run-as-root", "-allow-run-as-root"})
_ONE_PER_NODE: Final = re.compile(r"ppr:1:node.*|node(?::.*)?")
_NUMBERED_DEVICE: Final = re.compile(r"(?:^|,|=)(?:mlx5|hfi1|bnxt_re|irdma|mana)_(?:ib|an)?\d", re.ASCII)
_DEVICE_NAMES: Final = frozenset({"UCX_NET_DEVICES", "NCCL_IB_HCA"})
_GID_NAMES: Final = frozenset({"UCX_IB_GID_INDEX", "NCCL_IB_GID_INDEX"})
_LIBRARY_NAMES: Final = frozenset({"LD_LIBRARY_PATH", "PYTHONPATH", "LD_PRELOAD"})
_BLOCKING_BCAST: Final = "OMPI_MCA_coll_tuned_bcast_algorithm"
_CONCURRENCY: Final = frozenset({"AZCP_CONCURRENCY_VALUE", "AZCOPY_CONCURRENCY_VALUE"})
_COUNT: Final = re.compile(r"[0-9]{1,9}")
_MOST_CHUNK_BYTES: Final = 2**31 - 1


def overwritten(setup: Setup) -> Iterator[Finding]:
    """Variables of the launcher's env that the operator sets itself."""
    for setting in setup.settings:
        if setup.is_operator_launcher and setting.way is Way.ENV and setting.name in _OPERATORS:
            yield OVERWRITTEN.at(setting.line, f"{setting.name} is set in {setup.title}")


def fixed_values(setup: Setup) -> Iterator[Finding]:
    """Devices, GIDs and libraries by name."""
    for setting in setup.settings:
        value = setting.value or ""
        if setting.name in _DEVICE_NAMES and _NUMBERED_DEVICE.search(value):
            yield FIXED_DEVICES.at(setting.line, f"{setting.name} names devices by number")
        elif setting.name in _GID_NAMES and value.isdigit():
            yield FIXED_GID.at(setting.line, f"{setting.name} is fixed to {named(value)}")
        elif setting.name == _BLOCKING_BCAST:
            yield NO_EFFECT.at(setting.line, f"{setting.name} is set")
        elif setting.name in _CONCURRENCY and value:
            yield PINNED_CONCURRENCY.at(setting.line, f"{setting.name} is fixed")


def private_libraries(setup: Setup) -> Iterator[Finding]:
    """The kit's own tree in a search path that later programs inherit."""
    for setting in setup.settings:
        if setting.name not in _LIBRARY_NAMES:
            continue
        words = setting.command.words if setting.command else ()
        raw = next((w.text for w in words if f"{setting.name}=" in w.text and "/opt/azcp/" in w.text), "")
        if "/opt/azcp/" in (setting.value or "") or raw:
            yield PRIVATE_LIBRARIES.at(setting.line, f"{setting.name} leads into /opt/azcp")


def mpirun_options(setup: Setup) -> Iterator[Finding]:
    """What a hand-written mpirun needs."""
    known = {setting.name for setting in setup.settings}
    refuses_root = setup.is_pod and setup.may_be_root and "OMPI_ALLOW_RUN_AS_ROOT" not in known
    leaves_hcoll = "OMPI_MCA_pml" in known and "OMPI_MCA_coll_hcoll_enable" not in known
    for command in setup.script.commands:
        if not command.runs(*MPIRUN):
            continue
        if refuses_root and not _ROOT_ALLOWED & set(command.texts):
            yield NOT_AS_ROOT.at(command.line, f"mpirun in {setup.title} is without --allow-run-as-root")
        if leaves_hcoll:
            yield HCOLL.at(command.line, "mpirun uses UCX and leaves hcoll on")
        yield from _count(setup, command)
        if command.runs("azcp-cluster"):
            yield from _one_per_node(setup, command)


def _count(setup: Setup, command: Command) -> Iterator[Finding]:
    word = command.option("-np", "--np", "-n")
    text = setup.script.value(word) if word else None
    if text is None or not _COUNT.fullmatch(text) or setup.nodes is None:
        return
    if setup.is_pod and not setup.is_operator_launcher:  # each pod may run it for itself
        return
    expected = setup.nodes * (setup.slots or 1)
    if int(text) > expected and setup.slots is not None:
        what = f"mpirun -np {text}, but {setup.nodes} nodes have {expected} slots"
        yield WRONG_COUNT.at(command.line, what)
    elif int(text) < setup.nodes:
        what = f"mpirun -np {text} on {setup.nodes} nodes"
        yield WRONG_COUNT.at(command.line, what, severity=Severity.WARNING)


def _one_per_node(setup: Setup, command: Command) -> Iterator[Finding]:
    by = command.option("--map-by", "-map-by")
    per_node = command.option("-N", "--npernode", "-npernode")
    host_slots = command.option("--host", "-host", "-H")
    if setup.slots == 1 or "-pernode" in command.texts or "--pernode" in command.texts or host_slots:
        return
    if not (by and _ONE_PER_NODE.fullmatch(by.text)) and not (per_node and per_node.text == "1"):
        yield NOT_ONE_PER_NODE.at(command.line, "mpirun starts azcp-cluster without --map-by ppr:1:node")


def ucx_chosen(setup: Setup) -> Iterator[Finding]:
    """UCX is tuned, and Open MPI is told to use it."""
    tuned = next((s for s in setup.settings if s.name in {"UCX_TLS", "UCX_NET_DEVICES"}), None)
    runs = [c for c in setup.script.commands if c.runs(*MPIRUN, "azcp-cluster")]
    if tuned and runs and not is_set(setup.settings, "OMPI_MCA_pml"):
        # Under srun Open MPI takes UCX by itself where it can.
        severity = Severity.WARNING if any(c.runs(*MPIRUN) for c in runs) else Severity.NOTE
        yield UCX_UNUSED.at(tuned.line, f"{tuned.name} is set, the pml is not", severity=severity)


def distributor_options(setup: Setup) -> Iterator[Finding]:
    """Options of the azcp programs."""
    for command in setup.script.commands:
        chunk = command.option("--bcast-chunk") if command.runs("azcp-cluster") else None
        chunk_bytes = size_bytes(setup.script.value(chunk)) if chunk else None
        if chunk and chunk_bytes is not None and chunk_bytes > _MOST_CHUNK_BYTES:
            yield HUGE_CHUNK.at(chunk.line, f"--bcast-chunk {named(chunk.text)} for azcp-cluster")
        pinned = (
            command.option("--concurrency") if command.runs("azcp-cluster", "azcp", "azcp-launch") else None
        )
        if pinned:
            yield PINNED_CONCURRENCY.at(pinned.line, f"--concurrency {named(pinned.text)}")


SETUP_RULES: Final = (
    overwritten, fixed_values, private_libraries, mpirun_options, ucx_chosen, distributor_options,
)  # fmt: skip
