"""A destination that takes O_DIRECT when it is opened and refuses it when it is written."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from array import array
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import WriteError
from azcp_runtime.disk.commit import Committer
from azcp_runtime.disk.probe import direct_works, prepare
from azcp_runtime.disk.tree import Tree
from azcp_runtime.engine.slots import Slot
from azcp_runtime.engine.write import Writers
from azcp_runtime.plan.chunks import Plan
from azcp_runtime.plan.make import PlanRequest, make_plan
from azcp_runtime.plan.presence import AZURE
from azcp_runtime.plan.shards import Cluster

from tests.lab.dataset import DataSet, plain_data_set
from tests.lab.trees import assert_same, final_files
from tests.lab.waiting import wait_until

MIB: Final = 1 << 20
DEADLINE_S: Final = 60.0
WRITERS: Final = 8
CHUNK: Final = 256 << 10
# More than the writers, so that each of them has one in its hands.
CHUNKS_AT_LEAST: Final = 2 * WRITERS


class RefusedDirectWrites:
    """os.pwrite of a file system below the destination that does not take direct writes.

    The first `together` of them are refused at the same moment: each writer then finds out by itself.
    """

    def __init__(self, together: int, number: int = errno.EINVAL) -> None:
        self.refused = 0
        self._number = number
        self._together = threading.Barrier(together)
        self._lock = threading.Lock()
        self._pwrite = os.pwrite

    def __call__(self, descriptor: int, data: memoryview, offset: int) -> int:
        """Refuse or write."""
        if not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            return self._pwrite(descriptor, data, offset)
        with self._lock:
            self.refused += 1
            is_early = self.refused <= self._together.parties
        if is_early:
            self._together.wait(DEADLINE_S)
        raise OSError(self._number, os.strerror(self._number))


class Written:
    """A data set that was written by several threads from slots, as the pass does it.

    Attributes:
        notices: what the tree had to say.
        errors: what the threads reported.
    """

    def __init__(self, root: Path, data_set: DataSet, *, direct: bool) -> None:
        self.notices: list[str] = []
        self.errors: list[Exception] = []
        self._data_set = data_set
        sizes = array("Q", (blob.content.size for blob in data_set.blobs))
        names = [blob.name.encode() for blob in data_set.blobs]
        tree = Tree(root, names, sizes, direct=direct, notice=self.notices.append)
        committer = Committer(tree, self.errors.append)
        plan = plan_of(sizes)
        assert plan.lanes[0].chunks >= CHUNKS_AT_LEAST
        writers = Writers(plan, sizes, sizes[:], tree, committer, threads=WRITERS, fail=self.errors.append)
        slots = [self._filled(plan, chunk) for chunk in range(plan.lanes[0].chunks)]
        for slot in slots:
            writers.submit(slot)
        wait_until(
            lambda: bool(self.errors) or len(writers.written) == len(slots), DEADLINE_S, "all is written"
        )
        writers.stop()
        committer.close()
        wait_until(committer.finished, DEADLINE_S, "all is committed")

    def _filled(self, plan: Plan, chunk: int) -> Slot:
        slot = Slot(0, plan.lanes[0])
        slot.chunk = chunk
        for extent in plan.extents(chunk):
            content = self._data_set.blobs[plan.file[extent]].content
            start, length = plan.slot[extent], plan.length[extent]
            slot.payload[start : start + length] = content.read(plan.offset[extent], length)
        return slot


def plan_of(sizes: array[int]) -> Plan:
    request = PlanRequest(Cluster(1, 1, 1), 1 << 30, chunk_bytes=CHUNK)
    return make_plan(sizes, array("l", [AZURE] * len(sizes)), request)[0]


@pytest.fixture
def is_direct(tmp_path: Path) -> bool:
    """Whether this machine's temporary folder takes direct writes at all."""
    prepare(tmp_path)
    return direct_works(tmp_path)


@pytest.mark.parametrize(
    "sizes",
    [[8 * MIB + 77], [MIB + 1] * 8, [5 * MIB, 300_001, 8191, 4096, 2 * MIB - 1]],
    ids=["one file", "several files", "files of many sizes"],
)
def test_direct_writes_that_are_refused_fall_back_with_every_byte_right_and_one_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int], *, is_direct: bool
) -> None:
    data_set = plain_data_set(*sizes)
    refused = RefusedDirectWrites(WRITERS)
    monkeypatch.setattr(os, "pwrite", refused)
    written = Written(tmp_path, data_set, direct=is_direct)
    assert written.errors == []
    assert_same(tmp_path, data_set.manifest)
    assert len(written.notices) == int(is_direct)
    assert (refused.refused >= WRITERS) == is_direct


def test_direct_writes_that_work_need_no_notice(tmp_path: Path, *, is_direct: bool) -> None:
    data_set = plain_data_set(8 * MIB + 77, MIB + 1)
    written = Written(tmp_path, data_set, direct=is_direct)
    assert (written.errors, written.notices) == ([], [])
    assert_same(tmp_path, data_set.manifest)


def test_a_broken_disk_is_a_failure_and_no_reason_to_fall_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_direct: bool
) -> None:
    data_set = plain_data_set(8 * MIB)
    monkeypatch.setattr(os, "pwrite", RefusedDirectWrites(1, errno.EIO))
    written = Written(tmp_path, data_set, direct=is_direct)
    assert [isinstance(error, WriteError) for error in written.errors] == [True] * len(written.errors)
    assert bool(written.errors) == is_direct
    assert written.notices == []
    assert (final_files(tmp_path) == []) == is_direct
