"""Tokens, connections and proxies of the account's client, with a TLS account and an identity of our own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.azure.account import list_account, pinned
from azcp_runtime.azure.bearer import SharedToken, challenged_tenant
from azcp_runtime.azure.body import BodyReader
from azcp_runtime.azure.credential import Secret, find_secret, shared_token
from azcp_runtime.azure.introduction import introduce
from azcp_runtime.azure.retry import Retries, RetryLimits
from azcp_runtime.contract import CredentialEndedError, DownloadError, ExitCode, ListError, UsageError
from azcp_runtime.source.listing import Entry
from azcp_runtime.source.location import BlobLocation, parse_source
from azure.core.credentials import AccessTokenInfo, TokenRequestOptions
from azure.core.exceptions import ClientAuthenticationError

from tests.lab import faults
from tests.lab.dataset import plain_data_set
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import stored
from tests.lab.token_endpoint import Broken, TokenEndpoint

LIMITS: Final = RetryLimits(3, 30.0)
IDENTITY: Final = Secret("identity")
THREADS: Final = 16
DEADLINE_S: Final = 60.0


@pytest.fixture(autouse=True)
def _own_token() -> Iterator[None]:
    """A process has one token for its life; here each test counts as a process."""
    shared_token.cache_clear()
    yield
    shared_token.cache_clear()


@contextmanager
def account_with_identity(
    monkeypatch: pytest.MonkeyPatch, endpoint: TokenEndpoint, blobs: int = 4
) -> Iterator[FaultAccount]:
    """An account that wants the endpoint's tokens, and the environment that has them."""
    with endpoint, FaultAccount(stored(plain_data_set(*[1000] * blobs)), tls=True) as account:
        for name, value in (endpoint.env | account.trust).items():
            monkeypatch.setenv(name, value)
        account.script(endpoint.guard())
        yield account


def location_of(account: FaultAccount) -> BlobLocation:
    found = parse_source(account.url())
    assert isinstance(found, BlobLocation)
    return found


@contextmanager
def reader_of(account: FaultAccount) -> Iterator[BodyReader]:
    with closing(BodyReader(location_of(account), IDENTITY, LIMITS, Retries(), threading.Event())) as reader:
        yield reader


def read(reader: BodyReader, entry: Entry) -> bytes:
    into = memoryview(bytearray(entry.size))
    reader.read(entry, 0, into)
    return bytes(into)


def test_many_threads_ask_for_one_token_a_life(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = TokenEndpoint(life_s=4, delay_s=0.1)
    with account_with_identity(monkeypatch, endpoint) as account:
        entries = list(list_account(location_of(account), IDENTITY, LIMITS))
        began = time.monotonic()
        end = began + DEADLINE_S

        with reader_of(account) as reader, ThreadPoolExecutor(THREADS) as threads:

            def work(_: int) -> int:
                reads = 0
                while endpoint.requests < 4 and time.monotonic() < end:
                    read(reader, entries[reads % len(entries)])
                    reads += 1
                return reads

            assert all(list(threads.map(work, range(THREADS))))
        assert endpoint.most_at_once == 1
        # A token of a life of 4 s has 3 s at least, and is replaced at half of them at the earliest.
        assert 4 <= endpoint.requests <= 2 + (time.monotonic() - began) / 1.5
        assert {exchange.status for exchange in account.exchanges()} == {200, 206}


def test_the_listing_and_the_bodies_share_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    with account_with_identity(monkeypatch, TokenEndpoint()) as account:
        endpoint_requests = _requests_of_a_whole_read(account)
    assert endpoint_requests == {"Bearer token-0"}


def _requests_of_a_whole_read(account: FaultAccount) -> set[str]:
    with reader_of(account) as reader:
        for entry in list_account(location_of(account), IDENTITY, LIMITS):
            read(reader, entry)
    return {exchange.request.headers["authorization"] for exchange in account.exchanges()}


def test_threads_that_pin_a_list_share_a_token_too(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = TokenEndpoint(delay_s=0.1)
    with account_with_identity(monkeypatch, endpoint, blobs=64) as account:
        entries = list(list_account(location_of(account), IDENTITY, LIMITS))
        bare = [Entry(entry.name, entry.size) for entry in entries]
        found = list(pinned(location_of(account), IDENTITY, LIMITS, bare))
    assert [entry.etag for entry in found] == [entry.etag for entry in entries]
    assert endpoint.requests == 1


def test_a_refused_token_is_replaced_once_for_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = TokenEndpoint(delay_s=0.1)
    with account_with_identity(monkeypatch, endpoint) as account:
        entries = list(list_account(location_of(account), IDENTITY, LIMITS))
        ready = threading.Barrier(THREADS, action=endpoint.revoke)
        with reader_of(account) as reader, ThreadPoolExecutor(THREADS) as threads:

            def work(number: int) -> int:
                entry = entries[number % len(entries)]
                read(reader, entry)
                ready.wait(DEADLINE_S)
                return len(read(reader, entry))

            assert list(threads.map(work, range(THREADS))) == [1000] * THREADS
        refused = [exchange for exchange in account.exchanges() if exchange.status == 401]
    assert 1 <= len(refused) <= THREADS
    assert endpoint.requests == 2
    assert endpoint.most_at_once == 1


def test_a_refusal_for_good_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = TokenEndpoint()
    with account_with_identity(monkeypatch, endpoint) as account:
        entry = next(list_account(location_of(account), IDENTITY, LIMITS))
        account.script(Fault(faults.unauthorized(), times=FOREVER))
        with (
            reader_of(account) as reader,
            pytest.raises(DownloadError, match="HTTP 401 InvalidAuthenticationInfo; the token"),
        ):
            read(reader, entry)
        assert [exchange.status for exchange in account.reads()] == [401, 401]
    assert endpoint.requests == 2


def test_a_refusal_for_good_ends_the_command_without_a_traceback(dest: Path) -> None:
    with TokenEndpoint() as endpoint, FaultAccount(stored(plain_data_set(10, 20)), tls=True) as account:
        account.script(Fault(faults.unauthorized(), times=FOREVER))
        env = endpoint.env | account.trust
        outcome = distribute(account.url(), dest, "--auth=identity", env=env).expect(ExitCode.DOWNLOAD)
    assert "HTTP 401" in outcome.stderr
    assert "Traceback" not in outcome.text
    assert "token-" not in outcome.text


def test_an_identity_that_is_not_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = TokenEndpoint()
    endpoint.refuses = True
    with account_with_identity(monkeypatch, endpoint) as account:
        with pytest.raises(ListError, match="set AZCP_SAS"):
            list(list_account(location_of(account), IDENTITY, LIMITS))
        with reader_of(account) as reader, pytest.raises(CredentialEndedError, match="no token for identity"):
            read(reader, Entry(b"x", 10))
        assert account.exchanges() == []
    assert endpoint.requests == 1


@pytest.mark.parametrize("broken", list(Broken))
@pytest.mark.parametrize("kind", ["metadata", "app service", "workload"])
def test_an_endpoint_that_gives_no_answer_is_one_clear_error_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    kind: str,
    broken: Broken,
) -> None:
    (tmp_path / "token").write_text("assertion")
    monkeypatch.setattr("azcp_runtime.azure.identity._READ_S", 0.5)
    with FaultAccount(stored(plain_data_set(10)), tls=True) as account:
        certificate = account.certificate if kind == "workload" else None
        with TokenEndpoint(certificate=certificate, broken=broken) as endpoint:
            env = {
                "metadata": endpoint.metadata_env,
                "app service": endpoint.env,
                "workload": endpoint.workload_env(tmp_path / "token"),
            }[kind]
            for name, value in (env | account.trust).items():
                monkeypatch.setenv(name, value)
            with pytest.raises(ListError, match="no token for .*; check the identity") as told:
                introduce(IDENTITY, location_of(account), env, print, lists=True)
        assert account.exchanges() == []
    assert "assertion" not in str(told.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("skew_s", [-7200, -3600, 7200])
def test_an_endpoint_with_another_clock_is_not_asked_for_every_read(
    monkeypatch: pytest.MonkeyPatch, skew_s: int
) -> None:
    endpoint = TokenEndpoint(skew_s=skew_s)
    with account_with_identity(monkeypatch, endpoint, blobs=20) as account:
        with reader_of(account) as reader:
            for entry in list_account(location_of(account), IDENTITY, LIMITS):
                assert len(read(reader, entry)) == 1000
        assert {exchange.status for exchange in account.exchanges()} == {200, 206}
    assert endpoint.requests == 1


def test_an_identity_over_plain_http_is_refused_before_anything_is_asked(dest: Path) -> None:
    with TokenEndpoint() as endpoint, FaultAccount(stored(plain_data_set(10))) as account:
        outcome = distribute(account.url(), dest, "--auth=identity", env=endpoint.env).expect(ExitCode.USAGE)
        assert (endpoint.requests, account.exchanges()) == (0, [])
    assert "needs https" in outcome.stderr


def test_a_token_never_goes_over_plain_http() -> None:
    with FaultAccount(stored(plain_data_set(10))) as account:
        with pytest.raises(UsageError, match="https"):
            find_secret(location_of(account), "identity", None, {})
        with reader_of(account) as reader, pytest.raises(DownloadError, match="https only"):
            read(reader, Entry(b"x", 10))
        assert account.exchanges() == []


class Scripted:
    """A credential that says what it is told to: tokens with their lives in seconds, or a failure."""

    def __init__(self, *lives: tuple[str, int] | None) -> None:
        self._lives = list(lives)
        self.asked: list[TokenRequestOptions | None] = []
        self.closed = 0

    def get_token_info(self, *_scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        """The next one."""
        self.asked.append(options)
        answer = self._lives.pop(0)
        if answer is None:
            raise ClientAuthenticationError("no answer")
        return AccessTokenInfo(answer[0], int(time.time()) + answer[1])

    def close(self) -> None:
        """Count it."""
        self.closed += 1


def test_a_token_outlives_a_failed_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Scripted(("a", 600), None)
    shared = SharedToken(lambda: source)
    now = time.time()
    seen = []
    for later in (0, 400, 401, 402):
        monkeypatch.setattr("azcp_runtime.azure.bearer.time.time", lambda later=later: now + later)
        seen.append(shared.get_token("scope").token)
    assert seen == ["a"] * 4
    assert len(source.asked) == 2


def test_a_token_is_renewed_five_minutes_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = SharedToken(lambda: source)
    source = Scripted(("a", 3600), ("b", 3600))
    now = time.time()
    seen = []
    for later in (0, 3200, 3310):
        monkeypatch.setattr("azcp_runtime.azure.bearer.time.time", lambda later=later: now + later)
        seen.append(shared.get_token_info().token)
    assert seen == ["a", "a", "b"]


def test_a_failure_is_told_to_all_who_wait_for_it() -> None:
    source = Scripted(None)
    shared = SharedToken(lambda: source)
    for _ in range(3):
        with pytest.raises(ClientAuthenticationError, match="no answer"):
            shared.get_token_info()
    assert len(source.asked) == 1


def test_a_challenge_takes_its_tenant_to_a_credential_made_anew() -> None:
    source = Scripted(("a", 3600), ("b", 3600))
    shared = SharedToken(lambda: source)
    first, second = shared.get_token("scope"), shared.get_token("scope", tenant_id="t")
    assert [first.token, second.token, shared.replaced("a").token] == ["a", "b", "b"]
    assert source.asked == [{}, {"tenant_id": "t"}]
    assert source.closed == 1


def test_the_same_token_again_is_not_asked_for_by_every_thread() -> None:
    source = Scripted(("a", 3600), ("a", 3600))
    shared = SharedToken(lambda: source)
    shared.get_token_info()
    assert [shared.replaced("a").token for _ in range(3)] == ["a"] * 3
    assert len(source.asked) == 2


@pytest.mark.parametrize(
    ("challenge", "tenant"),
    [
        (
            "Bearer authorization_uri=https://login.invalid/t-1/oauth2/authorize resource_id=https://r",
            "t-1",
        ),
        ('Bearer realm="x", authorization_uri="https://login.invalid/t-2"', "t-2"),
        ("Bearer", ""),
        ("", ""),
    ],
)
def test_a_challenge_names_its_tenant(challenge: str, tenant: str) -> None:
    assert challenged_tenant(challenge) == tenant
