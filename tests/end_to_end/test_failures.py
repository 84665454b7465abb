"""An account that does not deliver: the run ends soon, by name, and never with a wrong file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ENV_SAS, ExitCode

from tests.lab import faults
from tests.lab.answers import Answer
from tests.lab.dataset import plain_data_set
from tests.lab.expectations import FAILS_WITHIN_S, expect_failure
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault, reading
from tests.lab.mpi import Outcome, distribute, started
from tests.lab.stored_blobs import StoredBlob, stored
from tests.lab.trees import final_files, wrong_files

MIB: Final = 1 << 20
DATA: Final = plain_data_set(0, 10, 4097, 3 * MIB + 5, 200_000)
LARGE: Final = "b3"
IMPATIENT: Final = ("--max-retries=2", "--retry-time=4")

NEVER_RIGHT: Final = {
    "503": faults.busy(),
    "429": faults.too_many_requests(),
    "500": faults.server_error(),
    "reset before the headers": faults.reset_before_headers(),
    "reset at the first byte": faults.reset_mid_body(0),
    "close at the first byte": faults.close_mid_body(0),
    "a range from elsewhere": faults.wrong_start(512),
    "another total": faults.wrong_total(1),
    "gzip on the way": faults.compressed_on_the_way(),
    "200 instead of 206": faults.whole_instead_of_range(),
    "another ETag": faults.other_etag("0x8DBBBBBBBBBBBBB"),
    "412": faults.error(412, "ConditionNotMet"),
    "404": faults.gone(),
    "401": faults.unauthorized(),
    "403": faults.forbidden("AuthorizationFailure"),
    "too many headers": faults.header_bomb(),
}


def run(account: FaultAccount, dest: Path, *options: str, ranks: int | None = None) -> Outcome:
    return distribute(account.url(), dest, *options, ranks=ranks, nodes=ranks)


@pytest.mark.parametrize("what", NEVER_RIGHT.values(), ids=NEVER_RIGHT.keys())
def test_a_blob_that_cannot_be_had_fails_the_run_by_name_and_leaves_no_wrong_file(
    dest: Path, what: faults.Change
) -> None:
    with FaultAccount(stored(DATA), [Fault(what, when=reading(LARGE), times=FOREVER)]) as account:
        outcome = run(account, dest, "--block-size=1MiB", *IMPATIENT)
    expect_failure(outcome, ExitCode.DOWNLOAD, LARGE)
    assert wrong_files(dest, DATA.manifest) == []
    assert LARGE not in final_files(dest)


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (faults.gone(), "BlobNotFound"),
        (faults.unauthorized(), "401"),
        (faults.forbidden("AuthorizationPermissionMismatch"), "Storage Blob Data Reader"),
        (faults.forbidden("AuthorizationFailure"), "the emulator refuses"),
        (faults.forbidden("AuthenticationFailed", "Signature did not match."), "AuthenticationFailed"),
        (faults.error(412, "ConditionNotMet"), "changed"),
        (faults.error(409, "BlobArchived"), "rehydrate"),
    ],
)
def test_a_refusal_is_final_and_tells_its_remedy(dest: Path, what: faults.Change, told: str) -> None:
    data_set = plain_data_set(100)
    with FaultAccount(stored(data_set), [Fault(what, times=FOREVER)]) as account:
        outcome = run(account, dest, "--max-retries=9")
        assert len(account.reads()) == 1
    expect_failure(outcome, ExitCode.DOWNLOAD, "b0", told)


def test_a_signature_that_expires_halfway_ends_the_run_and_whole_files_stay(dest: Path) -> None:
    data_set = plain_data_set(*[MIB] * 12)
    expired = Fault(
        faults.forbidden("AuthenticationFailed", "Signature not valid in the specified time frame"),
        after=6,
        times=FOREVER,
    )
    with FaultAccount(stored(data_set), [expired]) as account:
        env = {ENV_SAS: "sv=2024-11-04&sr=c&sp=rl&sig=c2VjcmV0"}
        outcome = distribute(account.url(), dest, "--concurrency=1", env=env)
    expect_failure(outcome, ExitCode.RESUMABLE, "expired")
    assert wrong_files(dest, data_set.manifest) == []


def test_a_token_that_is_refused_after_some_requests_ends_the_run_and_whole_files_stay(dest: Path) -> None:
    data_set = plain_data_set(*[MIB] * 12)
    refused = Fault(faults.unauthorized(), after=6, times=FOREVER)
    with FaultAccount(stored(data_set), [refused]) as account:
        outcome = run(account, dest, "--block-size=256KiB", "--concurrency=1", ranks=2)
    expect_failure(outcome, ExitCode.DOWNLOAD, "401", "identity")
    for node in range(2):
        assert wrong_files(dest / f"node{node}", data_set.manifest) == []


def test_a_blob_that_changes_during_the_run_is_named_and_its_bytes_are_never_mixed(dest: Path) -> None:
    data_set = plain_data_set(8 * MIB, 10)
    with FaultAccount(stored(data_set)) as account:

        def overwrite(answer: Answer) -> Answer:
            account.blobs["b0"] = StoredBlob(bytes(8 * MIB), etag="0x8DBBBBBBBBBBBBB")
            return answer

        account.script(Fault(overwrite, when=reading("b0"), after=2))
        outcome = run(account, dest, "--block-size=1MiB", ranks=2)
    expect_failure(outcome, ExitCode.DOWNLOAD, "b0")
    for node in range(2):
        assert "b0" not in final_files(dest / f"node{node}")


def test_a_retry_after_beyond_the_time_for_retries_ends_the_run_at_once(dest: Path) -> None:
    with FaultAccount(stored(plain_data_set(100)), [Fault(faults.busy("3600"), times=FOREVER)]) as account:
        outcome = run(account, dest, *IMPATIENT)
    expect_failure(outcome, ExitCode.DOWNLOAD, "b0", "503")


@pytest.mark.parametrize("what", [faults.close_mid_body(900), faults.reset_mid_body(900)])
def test_a_listing_that_breaks_off_is_never_taken_for_a_short_one(dest: Path, what: faults.Change) -> None:
    broken = Fault(what, when=faults.listing, after=1, times=FOREVER)
    with FaultAccount(stored(plain_data_set(*[10] * 30)), [broken], page_blobs=10) as account:
        outcome = run(account, dest, *IMPATIENT)
        assert account.reads() == []
    expect_failure(outcome, ExitCode.LIST)


def test_one_rank_that_fails_ends_all_at_once_and_tells_its_reason_once(dest: Path) -> None:
    data_set = plain_data_set(*[MIB] * 40)
    scripted = [
        Fault(faults.gone(), when=reading("b17"), times=FOREVER),
        Fault(faults.slow(MIB), times=FOREVER),
    ]
    with (
        FaultAccount(stored(data_set), scripted) as account,
        started(account.url(), dest, ranks=4, nodes=4) as job,
    ):
        outcome = job.wait(FAILS_WITHIN_S)
        job.wait_until_gone()
    expect_failure(outcome, ExitCode.DOWNLOAD, "BlobNotFound")
    assert len([line for line in outcome.stderr.splitlines() if "b17" in line]) == 1
    for node in range(4):
        assert wrong_files(dest / f"node{node}", data_set.manifest) == []


@pytest.mark.parametrize("ranks", [None, 2])
def test_an_account_that_never_answers_is_a_stall_told_by_name(dest: Path, ranks: int | None) -> None:
    data_set = plain_data_set(MIB, 10)
    with FaultAccount(
        stored(data_set), [Fault(faults.never(), when=reading("b0"), times=FOREVER)]
    ) as account:
        outcome = run(account, dest, "--stall-timeout=3", ranks=ranks)
    expect_failure(outcome, {ExitCode.DOWNLOAD, ExitCode.BROADCAST}, "b0")
