"""A SAS that ends: before the run, within it, and with another one in its place."""

from __future__ import annotations

import datetime as dt
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from azcp_runtime.contract import ENV_SAS, ExitCode
from azcp_runtime.contract.units import format_size
from azure.storage.blob import ContainerSasPermissions, generate_container_sas

from tests.lab import faults
from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_distributed, expect_trees
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault
from tests.lab.mpi import distribute, started
from tests.lab.stored_blobs import stored
from tests.lab.trees import assert_same
from tests.lab.upload import blob_url, upload
from tests.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from azcp_kit.azurite import Azurite

    from tests.lab.answers import Request

MIB: Final = 1 << 20
RANKS: Final = 3
SIZES: Final = [MIB] * 6 * RANKS
OLD: Final = "sv=2024-11-04&sr=c&si=readers&sig=b2xkIHNpZ25hdHVyZQ%3D%3D"
NEW: Final = "sv=2024-11-04&sr=c&si=readers&sig=bmV3IHNpZ25hdHVyZQ%3D%3D"


@contextmanager
def account_of_two(ended: threading.Event) -> Iterator[FaultAccount]:
    """An account that takes the old SAS until it has ended, and the new one from the start."""

    def refuses(request: Request) -> bool:
        return ended.is_set() and "sig=b2xk" in request.target

    refused = faults.forbidden("AuthenticationFailed", "Access policy fields: the policy has ended.")
    script = [Fault(refused, refuses, times=FOREVER), Fault(faults.slow(MIB), times=FOREVER)]
    with FaultAccount(stored(plain_data_set(*SIZES)), script) as account:
        yield account


def signed(azurite: Azurite, container: str, seconds: float) -> str:
    return generate_container_sas(
        azurite.account,
        container,
        account_key=azurite.key,
        permission=ContainerSasPermissions(read=True, list=True),
        expiry=dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds),
    )


def sas_until(seconds: float) -> str:
    end = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)
    return f"sv=2024-11-04&sr=c&sp=rl&se={end:%Y-%m-%dT%H:%M:%SZ}&sig=x"


def test_a_sas_whose_end_nobody_could_know_leaves_a_run_to_be_resumed_with_a_new_one(dest: Path) -> None:
    ended = threading.Event()
    with account_of_two(ended) as account:
        url, env = account.url(), {ENV_SAS: OLD}
        with started(url, dest, "--concurrency=1", ranks=RANKS, nodes=RANKS, env=env) as job:
            wait_until(lambda: bool(list(dest.rglob("b*"))) or job.ended(), 60, "a file is whole")
            ended.set()
            outcome = job.wait().expect(ExitCode.RESUMABLE)
        assert "the SAS expired or was withdrawn; make a new SAS" in outcome.stderr
        before = account.served_bytes()
        again = distribute(url, dest, "--compare=size", ranks=RANKS, nodes=RANKS, env={ENV_SAS: NEW})
        again.expect(ExitCode.DONE)
        assert account.served_bytes() - before < sum(SIZES)
    expect_trees(dest, plain_data_set(*SIZES), RANKS)


def test_a_sas_that_is_replaced_in_its_file_carries_all_ranks_on(dest: Path, tmp_path: Path) -> None:
    ended, file = threading.Event(), tmp_path / "sas"
    file.write_text(OLD)
    with account_of_two(ended) as account:
        options = ["--concurrency=1", f"--sas-file={file}"]
        with started(account.url(), dest, *options, ranks=RANKS, nodes=RANKS) as job:
            wait_until(lambda: len(account.reads()) >= RANKS or job.ended(), 60, "every rank reads")
            file.write_text(NEW)
            ended.set()
            outcome = job.wait()
        refused = [exchange for exchange in account.exchanges() if exchange.status == 403]
    expect_distributed(outcome, dest, plain_data_set(*SIZES), nodes=RANKS)
    assert 1 <= len(refused) <= RANKS


def test_a_sas_that_ends_before_the_run_can_is_refused_before_a_byte_is_read(dest: Path) -> None:
    with FaultAccount(stored(plain_data_set(*SIZES))) as account:
        env = {ENV_SAS: sas_until(15)}
        outcome = distribute(account.url(), dest, "--max-bandwidth=8Mbps", ranks=2, nodes=2, env=env)
        assert account.reads() == []
    outcome.expect(ExitCode.PREFLIGHT)
    assert f"before {format_size(sum(SIZES))} can be read (that takes 19 s at least)" in outcome.stderr


def test_a_sas_that_has_ended_is_refused_before_anything_is_asked(dest: Path) -> None:
    with FaultAccount(stored(plain_data_set(10))) as account:
        outcome = distribute(account.url(), dest, ranks=2, nodes=2, env={ENV_SAS: sas_until(-60)})
        assert account.exchanges() == []
    outcome.expect(ExitCode.PREFLIGHT)
    assert "it expired at 20" in outcome.stderr
    assert "UTC, and this clock says" in outcome.stderr


def test_when_a_sas_ends_is_told_at_the_start(dest: Path) -> None:
    with FaultAccount(stored(plain_data_set(10))) as account:
        outcome = distribute(account.url(), dest, env={ENV_SAS: sas_until(7200)}).expect(ExitCode.DONE)
    assert f"reads with the SAS of {ENV_SAS}, which expires at 20" in outcome.stderr
    assert "UTC, in 7" in outcome.stderr


def test_azurite_ends_a_sas_in_the_middle_and_takes_the_next_one(
    azurite: Azurite, container: str, dest: Path, tmp_path: Path
) -> None:
    data_set, file = plain_data_set(*[MIB] * 24), tmp_path / "sas"
    upload(data_set, azurite, container, "")
    url, options = blob_url(azurite.endpoint, container), [f"--sas-file={file}"]
    file.write_text(signed(azurite, container, 10))
    outcome = distribute(url, dest, *options, "--max-bandwidth=8Mbps").expect(ExitCode.RESUMABLE)
    # Nobody knows whether the file will hold another one by then: a warning, no refusal.
    assert f"it is read again from {file} then" in outcome.stderr
    assert "the SAS expired at 20" in outcome.stderr
    file.write_text(signed(azurite, container, 600))
    again = distribute(url, dest, *options, "--compare=size").expect(ExitCode.DONE)
    assert ", 0 skipped" not in again.stdout
    assert_same(dest, data_set.manifest)
