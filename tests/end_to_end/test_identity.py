"""Tokens that end within a run, of every kind of identity, with real ranks."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab import faults
from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_distributed, expect_failure
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault
from tests.lab.mpi import distribute, started
from tests.lab.stored_blobs import stored
from tests.lab.token_endpoint import CLIENT, Broken, TokenEndpoint
from tests.lab.tunnel_proxy import TunnelProxy
from tests.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB: Final = 1 << 20
LIFE_S: Final = 4
RANKS: Final = 3


@contextmanager
def guarded(*sizes: int, endpoint: TokenEndpoint, slow: bool = False) -> Iterator[FaultAccount]:
    """An account that takes the endpoint's tokens only."""
    account = FaultAccount(stored(plain_data_set(*sizes)), tls=True)
    account.script(endpoint.guard())
    if slow:
        account.script(Fault(faults.slow(MIB), times=FOREVER))
    with account:
        yield account


def test_tokens_that_end_during_the_run_are_renewed_for_all_ranks_by_one_of_them(dest: Path) -> None:
    data_set = plain_data_set(*[MIB] * 12 * RANKS)
    with (
        TokenEndpoint(LIFE_S, delay_s=0.1) as endpoint,
        guarded(*[MIB] * 12 * RANKS, endpoint=endpoint, slow=True) as account,
    ):
        env = endpoint.metadata_env | account.trust
        outcome = distribute(account.url(), dest, "--concurrency=1", ranks=RANKS, nodes=RANKS, env=env)
        statuses = {exchange.status for exchange in account.exchanges()}
    expect_distributed(outcome, dest, data_set, nodes=RANKS)
    assert statuses == {200, 206}
    assert outcome.seconds > 2 * LIFE_S
    assert endpoint.most_at_once == 1
    # Each is renewed at half its life, at the earliest.
    assert 4 <= endpoint.requests <= 2 + outcome.seconds / (LIFE_S / 2 - 1)
    assert "managed identity (from the metadata service); token until" in outcome.stderr


def test_ranks_whose_token_was_revoked_have_one_new_one_between_them(dest: Path) -> None:
    data_set = plain_data_set(*[MIB] * 4 * RANKS)
    with (
        TokenEndpoint() as endpoint,
        guarded(*[MIB] * 4 * RANKS, endpoint=endpoint, slow=True) as account,
    ):
        env = endpoint.env | account.trust
        with started(
            account.url(), dest, "--concurrency=1", "--auth=managed", ranks=RANKS, nodes=RANKS, env=env
        ) as job:
            wait_until(lambda: len(account.reads()) >= RANKS or job.ended(), 60, "every rank reads")
            endpoint.revoke()
            outcome = job.wait()
        refused = [exchange for exchange in account.exchanges() if exchange.status == 401]
    expect_distributed(outcome, dest, data_set, nodes=RANKS)
    assert 1 <= len(refused) <= RANKS
    assert endpoint.requests == 2


def test_an_identity_that_is_taken_away_ends_the_run_resumable(dest: Path) -> None:
    sizes = [MIB] * 8 * RANKS
    with TokenEndpoint(LIFE_S) as endpoint, guarded(*sizes, endpoint=endpoint, slow=True) as account:
        env = endpoint.env | account.trust
        with started(account.url(), dest, "--concurrency=1", ranks=RANKS, nodes=RANKS, env=env) as job:
            wait_until(lambda: len(account.reads()) >= RANKS or job.ended(), 60, "every rank reads")
            endpoint.refuses = True
            outcome = job.wait().expect(ExitCode.RESUMABLE)
        assert "no token for identity any more" in outcome.stderr
        assert "the same command goes on" in outcome.stderr
        endpoint.refuses = False
        again = distribute(account.url(), dest, ranks=RANKS, nodes=RANKS, env=env)
    again.expect(ExitCode.DONE)


def test_the_token_file_of_a_workload_is_read_at_each_exchange(dest: Path, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("assertion-0\n")
    data_set = plain_data_set(*[MIB] * 16)
    account = FaultAccount(stored(data_set), tls=True)
    with account, TokenEndpoint(LIFE_S, certificate=account.certificate) as endpoint:
        account.script(endpoint.guard())
        account.script(Fault(faults.slow(MIB), times=FOREVER))
        env = endpoint.workload_env(token_file) | account.trust
        with started(account.url(), dest, "--concurrency=1", ranks=2, nodes=2, env=env) as job:
            wait_until(lambda: endpoint.requests > 0 or job.ended(), 60, "the first exchange")
            token_file.write_text("assertion-1\n")
            outcome = job.wait()
    expect_distributed(outcome, dest, data_set, nodes=2)
    assert endpoint.assertions[0] == "assertion-0"
    assert set(endpoint.assertions[1:]) == {"assertion-1"}
    assert f"workload identity, client {CLIENT}" in outcome.stderr
    assert "assertion-" not in outcome.text


def test_a_client_id_that_nobody_knows_is_an_error_and_not_another_identity(dest: Path) -> None:
    with TokenEndpoint() as endpoint, guarded(10, endpoint=endpoint) as account:
        typo = {"AZURE_CLIENT_ID": CLIENT.replace("1", "3")}
        env = endpoint.metadata_env | account.trust | typo
        outcome = distribute(account.url(), dest, ranks=2, nodes=2, env=env).expect(ExitCode.LIST)
        assert account.exchanges() == []
    assert f"managed identity, client {typo['AZURE_CLIENT_ID']}" in outcome.stderr
    assert "Identity not found" in outcome.stderr
    assert endpoint.requests == 1


@pytest.mark.parametrize("broken", [Broken.RESET, Broken.NO_JSON])
def test_what_is_no_metadata_service_ends_the_run_with_its_reason_alone(dest: Path, broken: Broken) -> None:
    with TokenEndpoint(broken=broken) as endpoint, guarded(10, endpoint=endpoint) as account:
        outcome = distribute(account.url(), dest, ranks=2, nodes=2, env=endpoint.metadata_env | account.trust)
        assert account.exchanges() == []
    expect_failure(outcome, ExitCode.LIST, "no token for managed identity (from the metadata service)")
    assert "get_token_info failed" not in outcome.stderr
    assert "<html>" not in outcome.text


def test_without_any_credential_one_line_names_all_that_would_do(dest: Path) -> None:
    with FaultAccount({}, tls=True) as account:
        # A port that nobody serves.
        nobody = account.trust | {"PATH": "", "AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:9"}
        outcome = distribute(account.url(), dest, env=nobody).expect(ExitCode.LIST)
    (line,) = outcome.stderr.splitlines()
    for told in ("no token for managed identity", "AZCP_SAS", "AZURE_STORAGE_KEY", "az login", "--auth anon"):
        assert told in line
    assert ".;" not in line


@pytest.mark.parametrize("status", [404, 410, 429, 500, 503])
def test_a_busy_metadata_service_is_asked_again(dest: Path, status: int) -> None:
    with TokenEndpoint(first=[status, status]) as endpoint, guarded(100, endpoint=endpoint) as account:
        distribute(account.url(), dest, env=endpoint.metadata_env | account.trust).expect(ExitCode.DONE)
    assert endpoint.requests == 3


def test_the_metadata_service_is_never_asked_through_a_proxy(dest: Path) -> None:
    with (
        TokenEndpoint() as endpoint,
        guarded(100, endpoint=endpoint) as account,
        TunnelProxy() as proxy,
    ):
        address = f"http://127.0.0.1:{proxy.port}"
        proxies = {"HTTP_PROXY": address, "http_proxy": address, "HTTPS_PROXY": address, "NO_PROXY": ""}
        env = endpoint.metadata_env | account.trust | proxies
        distribute(account.url(), dest, env=env).expect(ExitCode.DONE)
        tunnels = {tunnel.target for tunnel in proxy.tunnels()}
        assert tunnels == {account.url().split("/")[2]}
    assert endpoint.requests == 1
