"""An account that is asked too often: all ranks slow down together, speed up again, and lose nothing."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab import faults
from tests.lab.answers import Request
from tests.lab.blob_server import Exchange
from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_distributed, expect_trees, summary_of
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Change, Fault
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import stored
from tests.lab.throttle import Bucket, Storm

MIB: Final = 1 << 20
PER_S: Final = 200.0
THROTTLED: Final = {503, 429}


def seconds_of(reads: list[Exchange]) -> list[float]:
    """When each was asked, counted from the first."""
    return [read.request.at - reads[0].request.at for read in reads]


@pytest.mark.parametrize(
    "refusal",
    [faults.busy(), faults.busy("1"), faults.too_many_requests(), faults.too_many_requests("1")],
    ids=["503", "503 with Retry-After", "429", "429 with Retry-After"],
)
def test_ranks_find_together_how_many_requests_an_account_takes(dest: Path, refusal: Change) -> None:
    data_set = plain_data_set(*[20_000] * 800)
    throttle = Fault(refusal, when=Bucket(PER_S, 20).refuses, times=FOREVER)
    with FaultAccount(stored(data_set), [throttle]) as account:
        outcome = distribute(account.url(), dest, ranks=4, nodes=4)
        reads = account.reads()
    expect_distributed(outcome, dest, data_set, 4)
    later = list(reads[len(reads) // 2 :])
    assert sum(read.status in THROTTLED for read in later) < 0.15 * len(later)
    told = summary_of(outcome).retries.split("x")
    refused = Counter(read.status for read in reads if read.status in THROTTLED)
    assert [(int(told[0]), int(told[1]))] == list(refused.items())
    assert outcome.stderr.count("the account throttles") == 1


def test_a_storm_of_refusals_is_met_with_fewer_requests_and_forgotten_when_it_is_over(dest: Path) -> None:
    data_set = plain_data_set(*[20_000] * 1500)
    storm = Storm(share=0.6, seconds=6)
    throttle = Fault(faults.busy(), when=storm.refuses, times=FOREVER)
    with FaultAccount(stored(data_set), [throttle]) as account:
        outcome = distribute(account.url(), dest, "--max-retries=6", ranks=4, nodes=4)
        reads = account.reads()
    expect_distributed(outcome, dest, data_set, 4)
    per_s = Counter(int(at) for at in seconds_of(reads))
    assert max(per_s[4], per_s[5]) < per_s[0] / 2
    assert max(per_s[second] for second in range(6, max(per_s) + 1)) > per_s[5] * 4
    assert "the account takes all requests again" in outcome.stderr


def test_a_block_that_is_refused_leaves_the_other_blocks_as_they_are(dest: Path) -> None:
    data_set = plain_data_set(8 * MIB)

    def is_third(request: Request) -> bool:
        return request.is_blob_read and request.range == (2 * MIB, 3 * MIB - 1)

    with FaultAccount(stored(data_set), [Fault(faults.busy(), when=is_third, times=4)]) as account:
        outcome = distribute(account.url(), dest, "--block-size=1MiB", ranks=2, nodes=2)
        ranges = Counter(read.request.range for read in account.reads())
    expect_distributed(outcome, dest, data_set, 2)
    third = ranges.pop((2 * MIB, 3 * MIB - 1))
    assert third == 5
    assert set(ranges.values()) == {1}


def test_an_account_that_only_refuses_ends_the_run_after_its_retries(dest: Path) -> None:
    refusing = Fault(faults.busy(), times=FOREVER)
    with FaultAccount(stored(plain_data_set(1000)), [refusing]) as account:
        distribute(account.url(), dest, "--max-retries=3").expect(ExitCode.DOWNLOAD)
        assert len(account.reads()) == 4


def test_the_bandwidth_that_one_rank_does_not_use_goes_to_the_other_and_is_never_exceeded(
    dest: Path, tmp_path: Path
) -> None:
    cap, block = 4 * MIB, 256 << 10
    data_set = plain_data_set(*[MIB] * 24)
    half = data_set.blobs[:12]
    with FaultAccount(stored(data_set)) as account:
        # Node 1 has them from a run of its own, and reads nothing else.
        names = tmp_path / "names"
        names.write_text("".join(f"{blob.name}\t{blob.content.size}\n" for blob in half))
        distribute(account.url(), tmp_path / "before", f"--shardlist={names}", nodes=1)
        (tmp_path / "before" / "node0").rename(dest / "node1")
        before = len(account.reads())
        options = ("--max-bandwidth=4MiB/s", f"--block-size={block}")
        outcome = distribute(account.url(), dest, *options, ranks=2, nodes=2)
        reads = account.reads()[before:]
    assert summary_of(outcome).peer == len(half)
    expect_trees(dest, data_set, 2)
    at = seconds_of(reads)
    assert sum(read.sent_bytes for read in reads) / at[-1] > 0.7 * cap
    for first, last in itertools.combinations(range(len(reads)), 2):
        asked = sum(read.sent_bytes for read in reads[first : last + 1])
        assert asked <= cap * (at[last] - at[first] + 0.1) + 2 * block


def test_retry_after_is_waited_for_by_the_listing_too(dest: Path) -> None:
    data_set = plain_data_set(1000)
    with FaultAccount(stored(data_set), [Fault(faults.busy("5"), when=faults.listing)]) as account:
        distribute(account.url(), dest).expect(ExitCode.DONE)
        first, second = (each.request.at for each in account.exchanges() if each.request.is_list)
    assert second - first > 4.9
