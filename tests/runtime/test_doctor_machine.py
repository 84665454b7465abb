"""What azcp-doctor says of the right to lock memory, of shared memory, CPUs and memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from azcp_runtime.doctor.check import Check, Status
from azcp_runtime.doctor.privileges import Privileges, check_memlock, read_privileges
from azcp_runtime.doctor.processor import (
    Processor,
    check_memory,
    check_page_size,
    check_processor,
    read_processor,
)
from azcp_runtime.doctor.shared_memory import SharedMemory, check_shared_memory, read_shared_memory

MIB = 1 << 20
GIB = 1 << 30
DOCKER_DEFAULT = 0xA80425FB
WITH_IPC_LOCK = 0xA80465FB
ROOT = Privileges(0, 8 * MIB, 8 * MIB, WITH_IPC_LOCK, WITH_IPC_LOCK, is_in_user_namespace=False)
ORDINARY = Privileges(1000, 64 << 10, 64 << 10, 0, DOCKER_DEFAULT, is_in_user_namespace=False)
PROCESSOR = Processor(cpus=96, quota=None, page_bytes=4096, memory_bytes=500 * GIB)


def memlock(facts: Privileges, *, is_required: bool = True, has_rdma: bool = True) -> Check:
    return check_memlock(facts, 4 * GIB, is_required=is_required, has_rdma=has_rdma)


def test_an_effective_capability_lifts_the_limit() -> None:
    assert memlock(ROOT).status is Status.OK


def test_a_limit_that_holds_the_buffers_needs_no_capability() -> None:
    assert memlock(replace(ORDINARY, limit_bytes=4 * GIB)).status is Status.OK
    assert memlock(replace(ORDINARY, limit_bytes=None)).found == "unlimited"


def test_a_capability_that_was_granted_but_is_not_effective_is_told_from_one_that_was_not_granted() -> None:
    granted = memlock(replace(ORDINARY, bounding=WITH_IPC_LOCK))
    assert granted.status is Status.FAIL
    assert "IPC_LOCK was granted, but it is not effective (CapEff 0x0) for uid 1000" in granted.found
    assert "run this container as root" in granted.remedy
    assert "IPC_LOCK was not granted" in memlock(ORDINARY).found
    assert "add the capability IPC_LOCK" in memlock(ORDINARY).remedy


def test_the_capability_does_not_count_in_a_user_namespace() -> None:
    check = memlock(replace(ROOT, is_in_user_namespace=True))
    assert check.status is Status.FAIL
    assert "in a user namespace IPC_LOCK does not lift the limit" in check.found


def test_a_soft_limit_below_the_hard_one_is_raised_by_the_user() -> None:
    assert memlock(replace(ORDINARY, hard_bytes=None)).remedy.startswith("ulimit -l unlimited")


def test_a_small_limit_warns_unless_rdma_is_required_and_is_nothing_where_there_is_none() -> None:
    assert memlock(ORDINARY, is_required=False).status is Status.WARN
    assert memlock(ORDINARY, is_required=False, has_rdma=False).status is Status.OK


def test_privileges_are_read_from_the_process_file_system(tmp_path: Path) -> None:
    own = tmp_path / "self"
    own.mkdir()
    (own / "status").write_text(
        "Name:\tpython\nUid:\t0\t1000\t1000\t1000\nCapEff:\t0000000000000000\nCapBnd:\t00000000a80465fb\n"
    )
    (own / "uid_map").write_text("         0     100000      65536\n")
    facts = read_privileges(tmp_path)
    assert (facts.uid, facts.effective, facts.bounding) == (1000, 0, WITH_IPC_LOCK)
    assert facts.is_in_user_namespace


def test_a_kernel_without_user_namespaces_has_the_initial_one(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text("Uid:\t0\t0\t0\t0\nCapEff:\t0\nCapBnd:\t0\n")
    assert not read_privileges(tmp_path).is_in_user_namespace


def test_this_process_has_privileges_that_can_be_read() -> None:
    assert read_privileges().bounding >= read_privileges().effective


def test_the_containers_default_of_shared_memory_matters_only_to_several_ranks_per_node() -> None:
    docker = SharedMemory(64 * MIB, 64 * MIB, is_writable=True)
    assert check_shared_memory(docker, 1, None).status is Status.OK
    assert check_shared_memory(docker, 4, None).status is Status.WARN
    assert check_shared_memory(docker, 9, None).status is Status.FAIL
    assert check_shared_memory(SharedMemory(GIB, GIB, is_writable=True), 8, None).status is Status.OK


def test_full_shared_memory_counts_as_small() -> None:
    check = check_shared_memory(SharedMemory(GIB, 0, is_writable=True), 2, None)
    assert check.status is Status.FAIL
    assert "emptyDir" in check.remedy


def test_what_phase_two_wants_of_shared_memory_can_be_asked_for() -> None:
    check = check_shared_memory(SharedMemory(64 * MIB, 64 * MIB, is_writable=True), 1, GIB)
    assert check.status is Status.FAIL
    assert check.found.startswith("1.0 GiB are wanted")


def test_an_image_without_shared_memory_is_found_out(tmp_path: Path) -> None:
    nothing = read_shared_memory(tmp_path / "shm")
    assert check_shared_memory(nothing, 1, None).status is Status.OK
    assert check_shared_memory(nothing, 2, None).status is Status.FAIL


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "max 100000"}, None),
        ({"cpu.max": "250000 100000"}, 2.5),
        ({}, None),
    ],
)
def test_a_quota_of_cpu_time_is_read(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    group = tmp_path / "pod"
    group.mkdir()
    for name, text in files.items():
        (group / name).write_text(text)
    assert read_processor("0::/pod\n", tmp_path).quota == quota


def test_the_tightest_quota_above_the_process_counts(tmp_path: Path) -> None:
    inner = tmp_path / "cpu" / "job" / "step"
    inner.mkdir(parents=True)
    for folder, quota in ((inner, "-1"), (inner.parent, "400000")):
        (folder / "cpu.cfs_quota_us").write_text(quota)
        (folder / "cpu.cfs_period_us").write_text("100000")
    assert read_processor("4:cpu,cpuacct:/job/step\n7:memory:/job\n", tmp_path).quota == 4.0


def test_ranks_that_share_too_few_cpus_are_warned_of() -> None:
    assert check_processor(PROCESSOR, 8).status is Status.OK
    assert check_processor(replace(PROCESSOR, quota=4.0), 8).status is Status.WARN
    assert (
        check_processor(replace(PROCESSOR, quota=4.0), 1).found
        == "96 CPUs, a quota of 4.0, 1 rank on this node"
    )


def test_little_memory_is_warned_of() -> None:
    assert check_memory(PROCESSOR, 8).status is Status.OK
    assert check_memory(replace(PROCESSOR, memory_bytes=GIB), 2).status is Status.WARN


def test_large_pages_are_fine() -> None:
    check = check_page_size(replace(PROCESSOR, page_bytes=65536))
    assert (check.status, check.found) == (Status.OK, "64 KiB")
