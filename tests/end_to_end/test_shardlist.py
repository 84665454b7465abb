"""A list in the listing's place is believed only as far as the account confirms it."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_failure
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import DISTRIBUTE, distribute
from tests.lab.stored_blobs import stored


@pytest.mark.parametrize("size", [9, 11, 0])
def test_a_list_with_another_size_than_the_blob_is_refused(dest: Path, tmp_path: Path, size: int) -> None:
    listing = tmp_path / "list.tsv"
    listing.write_text(f"b0\t{size}\t-\n")
    with FaultAccount(stored(plain_data_set(10))) as account:
        outcome = distribute(account.url(), dest, f"--shardlist={listing}")
        assert account.reads() == []
    expect_failure(outcome, {ExitCode.LIST}, "b0")


def test_a_list_with_a_blob_that_is_gone_is_refused_even_if_it_was_empty(dest: Path, tmp_path: Path) -> None:
    listing = tmp_path / "list.tsv"
    listing.write_text("gone\t0\tMon, 01 Jan 2024 00:00:00 GMT\n")
    with FaultAccount(stored(plain_data_set(10))) as account:
        outcome = distribute(account.url(), dest, f"--shardlist={listing}")
    expect_failure(outcome, {ExitCode.LIST})
    assert not (dest / "gone").exists()


def test_every_range_of_a_dated_list_is_tied_to_one_etag(dest: Path, tmp_path: Path) -> None:
    data_set = plain_data_set(3 << 20)
    listing = tmp_path / "list.tsv"
    listing.write_text(f"b0\t{3 << 20}\n")
    with FaultAccount(stored(data_set)) as account:
        distribute(account.url(), dest, f"--shardlist={listing}", ranks=2, nodes=2).expect(ExitCode.DONE)
        reads = account.reads()
    assert reads
    assert all("if-match" in read.request.headers for read in reads)


def test_ranks_with_different_options_are_refused_before_the_account_is_asked(dest: Path) -> None:
    with FaultAccount(stored(plain_data_set(10))) as account:
        other = [":", "-n", "1", str(DISTRIBUTE), account.url(), str(dest), "--verify"]
        outcome = distribute(account.url(), dest, *other, ranks=1)
        assert account.reads() == []
    expect_failure(outcome, {ExitCode.USAGE}, "different options")
