"""An account that misbehaves for a while: what is tried again, and that no byte is lost."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab import faults
from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_trees
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault
from tests.lab.mpi import Outcome, distribute
from tests.lab.stored_blobs import StoredBlob, stored
from tests.lab.summary import parse_summary
from tests.lab.trees import Entry, assert_same

MIB: Final = 1 << 20
DATA: Final = plain_data_set(0, 10, 4097, 3 * MIB + 5, 200_000)
ETAG: Final = '"0x8DAAAAAAAAAAAAA"'
PATIENT: Final = ("--max-retries=4", "--retry-time=60")

RETRIED: Final = {
    "503": faults.busy(),
    "503 with Retry-After": faults.busy("1"),
    "503 with a date": faults.busy_until_date(1),
    "503 with nonsense in Retry-After": faults.busy("soon"),
    "429": faults.too_many_requests(),
    "429 with Retry-After": faults.too_many_requests("1"),
    "500": faults.server_error(),
    "500 OperationTimedOut": faults.error(500, "OperationTimedOut"),
    "502": faults.error(502, "BadGateway"),
    "504": faults.error(504, "GatewayTimeout"),
    "408": faults.error(408, "RequestTimeout"),
    "reset before the headers": faults.reset_before_headers(),
    "reset at the first byte": faults.reset_mid_body(0),
    "reset in the body": faults.reset_mid_body(4000),
    "close at the first byte": faults.close_mid_body(0),
    "close in the body": faults.close_mid_body(3999),
    "half a range": faults.half_range(),
    "a range from elsewhere": faults.wrong_start(512),
    "Content-Length too large": faults.wrong_length(7),
    "Content-Length too small": faults.wrong_length(-7),
    "gzip on the way": faults.compressed_on_the_way(),
    "chunked": faults.chunked(),
    "too many headers": faults.header_bomb(),
    "slow": faults.slow(2 * MIB),
    "a clock an hour late": faults.skewed_date(-3600),
    "a clock a day early": faults.skewed_date(86400),
}


def run(account: FaultAccount, dest: Path, *options: str, ranks: int | None = None) -> Outcome:
    return distribute(account.url(), dest, *options, ranks=ranks, nodes=ranks)


@pytest.mark.parametrize("what", RETRIED.values(), ids=RETRIED.keys())
def test_a_passing_fault_costs_a_retry_and_no_byte(dest: Path, what: faults.Change) -> None:
    with FaultAccount(stored(DATA), [Fault(what, times=2)]) as account:
        outcome = run(account, dest, "--block-size=1MiB", *PATIENT).expect(ExitCode.DONE)
    assert_same(dest, DATA.manifest)
    assert parse_summary(outcome.stdout).downloaded_bytes == DATA.total_bytes


def test_every_range_is_held_to_the_etag_of_the_one_listing(dest: Path) -> None:
    data_set = plain_data_set(5 * MIB, 10)
    with FaultAccount(stored(data_set)) as account:
        run(account, dest, "--block-size=1MiB", ranks=2).expect(ExitCode.DONE)
        assert {exchange.request.headers.get("if-match") for exchange in account.reads()} == {ETAG}
        assert sum(exchange.request.is_list for exchange in account.exchanges()) == 1


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_a_stored_encoding_is_left_as_it_is(dest: Path, encoding: str) -> None:
    body = gzip.compress(b"data" * 50_000)
    blob = StoredBlob(
        body, content_encoding=encoding, content_md5=hashlib.md5(body, usedforsecurity=False).digest()
    )
    with FaultAccount({"b.gz": blob}) as account:
        run(account, dest, "--verify", ranks=2).expect(ExitCode.DONE)
        assert {read.request.headers.get("accept-encoding", "identity") for read in account.reads()} == {
            "identity"
        }
    assert_same(dest / "node1", {"b.gz": Entry(len(body), hashlib.sha256(body).hexdigest())})


@pytest.mark.parametrize(
    ("what", "least_s"),
    [(faults.busy("2"), 2.0), (faults.too_many_requests("2"), 2.0), (faults.busy_until_date(3), 2.0)],
)
def test_retry_after_is_waited_for(dest: Path, what: faults.Change, least_s: float) -> None:
    with FaultAccount(stored(plain_data_set(1000)), [Fault(what)]) as account:
        run(account, dest).expect(ExitCode.DONE)
        first, second = (read.request.at for read in account.reads("b0"))
    assert least_s <= second - first + 0.05
    assert second - first < least_s + 4


@pytest.mark.parametrize("ranks", [None, 2])
def test_a_retry_after_beyond_the_stall_timeout_is_no_stall(dest: Path, ranks: int | None) -> None:
    with FaultAccount(stored(plain_data_set(1000)), [Fault(faults.busy("4"))]) as account:
        outcome = distribute(account.url(), dest, "--stall-timeout=1", ranks=ranks, nodes=ranks)
        outcome.expect(ExitCode.DONE)
        first, second = (read.request.at for read in account.reads("b0"))
    assert second - first >= 4


@pytest.mark.parametrize("ranks", [None, 2])
def test_a_rate_that_lets_nothing_through_for_longer_than_the_stall_timeout_is_no_stall(
    dest: Path, ranks: int | None
) -> None:
    with FaultAccount(stored(plain_data_set(256 << 10))) as account:
        options = ["--stall-timeout=1", "--max-bandwidth=64KiB/s", "--block-size=128KiB"]
        distribute(account.url(), dest, *options, ranks=ranks, nodes=ranks).expect(ExitCode.DONE)


def test_a_cut_body_goes_on_from_where_it_stopped(dest: Path) -> None:
    data_set = plain_data_set(MIB)
    cut = 700_000
    with FaultAccount(stored(data_set), [Fault(faults.close_mid_body(cut))]) as account:
        run(account, dest, "--block-size=1MiB").expect(ExitCode.DONE)
        ranges = [read.request.range for read in account.reads("b0")]
        assert account.served_bytes() == MIB
    assert ranges == [(0, MIB - 1), (cut, MIB - 1)]
    assert_same(dest, data_set.manifest)


def test_progress_refills_the_budget_of_retries(dest: Path) -> None:
    data_set = plain_data_set(MIB)
    with FaultAccount(stored(data_set), [Fault(faults.close_mid_body(150_000), times=6)]) as account:
        run(account, dest, "--max-retries=2").expect(ExitCode.DONE)
        assert len(account.reads()) == 7
    assert_same(dest, data_set.manifest)


def test_retries_are_told_by_class_before_the_total(dest: Path) -> None:
    scripted = [
        Fault(faults.busy(), times=3),
        Fault(faults.too_many_requests(), times=2),
        Fault(faults.server_error()),
    ]
    with FaultAccount(stored(DATA), scripted) as account:
        outcome = run(account, dest, *PATIENT, ranks=2).expect(ExitCode.DONE)
    retries = parse_summary(outcome.stdout).retries
    for told in ("503x3", "429x2", "5xxx1"):
        assert told in retries


def test_a_storm_of_throttling_passes_on_four_ranks(dest: Path) -> None:
    data_set = plain_data_set(*[100_000] * 60)
    with FaultAccount(stored(data_set), [Fault(faults.busy(), times=40)]) as account:
        run(account, dest, ranks=4).expect(ExitCode.DONE)
    expect_trees(dest, data_set, 4)


def test_a_listing_is_tried_again_too(dest: Path) -> None:
    scripted = [
        Fault(faults.busy("1"), when=faults.listing),
        Fault(faults.reset_before_headers(), when=faults.listing),
    ]
    with FaultAccount(stored(DATA), scripted) as account:
        run(account, dest).expect(ExitCode.DONE)
    assert_same(dest, DATA.manifest)


def test_a_slow_account_is_no_stall(dest: Path) -> None:
    data_set = plain_data_set(MIB)
    with FaultAccount(stored(data_set), [Fault(faults.slow(MIB / 5), times=FOREVER)]) as account:
        run(account, dest, "--stall-timeout=2", "--concurrency=1", ranks=2).expect(ExitCode.DONE)
    assert_same(dest / "node1", data_set.manifest)


def test_the_bandwidth_cap_holds_for_all_ranks_together(dest: Path) -> None:
    data_set = plain_data_set(*[MIB] * 12)
    with FaultAccount(stored(data_set)) as account:
        run(account, dest, "--max-bandwidth=4MiB/s", ranks=3).expect(ExitCode.DONE)
        times = [read.request.at for read in account.reads()]
    assert max(times) - min(times) > 1.5
    assert_same(dest / "node2", data_set.manifest)
