"""Broadcast chunks of every size: from below a page to beyond what one MPI call can carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab.content import Content
from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_failure, expect_trees
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import StoredBlob, stored

if TYPE_CHECKING:
    from pathlib import Path

MIB: Final = 1 << 20
GIB: Final = 1 << 30


@pytest.mark.parametrize("chunk", ["4096", "5000", "64KiB", "1000000", "1MiB", "7MiB", "64MiB"])
def test_a_chunk_of_any_size_carries_every_file_right(dest: Path, chunk: str) -> None:
    data_set = plain_data_set(0, 1, 4095, 4096, 4097, 65535, 65536, 65537, MIB - 1, MIB, MIB + 1, 3 * MIB + 7)
    with FaultAccount(stored(data_set)) as account:
        distribute(account.url(), dest, f"--bcast-chunk={chunk}", ranks=3, nodes=3).expect(ExitCode.DONE)
    expect_trees(dest, data_set, 3)


@pytest.mark.parametrize("pipeline", [1, 2, 16])
def test_any_number_of_broadcasts_in_flight_is_right(dest: Path, pipeline: int) -> None:
    data_set = plain_data_set(*[300_000] * 20, 9 * MIB)
    options = ("--bcast-chunk=256KiB", f"--bcast-pipeline={pipeline}", "--bcast-writers=3")
    with FaultAccount(stored(data_set)) as account:
        distribute(account.url(), dest, *options, ranks=4, nodes=2).expect(ExitCode.DONE)
    expect_trees(dest, data_set, 2)


def test_a_chunk_beyond_two_gigabytes_arrives_whole(dest: Path) -> None:
    data_set = plain_data_set(2 * GIB + 1)
    options = ("--bcast-chunk=2049MiB", "--memory=5GiB", "--bcast-pipeline=1")
    with FaultAccount(stored(data_set)) as account:
        distribute(account.url(), dest, *options, ranks=2, nodes=2).expect(ExitCode.DONE)
    expect_trees(dest, data_set, 2)


def test_a_chunk_that_does_not_fit_into_the_memory_is_refused_before_a_byte_is_read(dest: Path) -> None:
    with FaultAccount({"large": StoredBlob(Content(9 * GIB, seed=1))}) as account:
        outcome = distribute(account.url(), dest, "--bcast-chunk=8GiB", "--memory=64MiB", ranks=2, nodes=2)
        assert account.reads() == []
    expect_failure(outcome, ExitCode.PLAN, "--memory", "--bcast-chunk")


def test_a_chunk_above_eight_gigabytes_is_no_chunk(dest: Path) -> None:
    with FaultAccount(stored(plain_data_set(10))) as account:
        distribute(account.url(), dest, "--bcast-chunk=9GiB").expect(ExitCode.USAGE)
        assert account.exchanges() == []
