"""A clock that is off: what the account says of it reaches the user, with a SAS and with a shared key."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ENV_ACCOUNT_KEY, ENV_SAS, ExitCode

from tests.lab import faults
from tests.lab.answers import Answer
from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_failure
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault, listing
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import stored

DATA: Final = plain_data_set(10)
KEY: Final = base64.b64encode(b"k" * 32).decode()
WITH: Final = {
    "sas": {ENV_SAS: "sv=2024-11-04&sr=c&sp=rl&sig=c2VjcmV0"},
    "key": {ENV_ACCOUNT_KEY: KEY},
}


def refused_at(by_s: float) -> faults.Change:
    """The refusal of an account whose clock differs from ours by so many seconds."""
    refuse, skew = faults.forbidden("AuthenticationFailed"), faults.skewed_date(by_s)

    def change(answer: Answer) -> Answer:
        return skew(refuse(answer))

    return change


@pytest.mark.parametrize("credential", WITH.values(), ids=WITH.keys())
@pytest.mark.parametrize("by_s", [-3600.0, 3600.0])
def test_a_refused_listing_tells_that_the_clocks_differ(
    dest: Path, credential: dict[str, str], by_s: float
) -> None:
    refusal = Fault(refused_at(by_s), when=listing, times=FOREVER)
    with FaultAccount(stored(DATA), [refusal]) as account:
        outcome = distribute(account.url(), dest, env=credential)
    expect_failure(outcome, ExitCode.LIST, "AuthenticationFailed", "clock")


@pytest.mark.parametrize("credential", WITH.values(), ids=WITH.keys())
def test_a_refused_blob_tells_that_the_clocks_differ(dest: Path, credential: dict[str, str]) -> None:
    with FaultAccount(stored(DATA), [Fault(refused_at(3600), times=FOREVER)]) as account:
        outcome = distribute(account.url(), dest, env=credential)
    expect_failure(outcome, ExitCode.DOWNLOAD, "b0", "AuthenticationFailed", "clock")
