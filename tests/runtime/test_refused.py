"""Refusals by the account, told apart with their remedies."""

from __future__ import annotations

import re
import time
from email.utils import formatdate

import pytest
from azcp_runtime.azure.refusals import Asker, Refusal, read_refusal, refusal, remedy_for
from azcp_runtime.contract import ExitCode

from tests.lab.answers import error_answer


def told(
    code: str,
    kind: str,
    detail: str = "",
    *,
    status: int = 403,
    skew_s: float = 0.0,
    url: str = "https://10.1.2.3/a",
) -> str:
    answer = error_answer(status, code, "Scripted.", detail)
    headers = dict(answer.headers) | {"Date": formatdate(time.time() + skew_s, usegmt=True)}
    asker = Asker(kind, url)
    return remedy_for(read_refusal(status, headers, answer.body.decode()), asker, time.time())


@pytest.mark.parametrize(
    ("code", "kind", "detail", "remedy"),
    [
        ("AuthorizationPermissionMismatch", "identity", "", "Storage Blob Data Reader"),
        ("AuthorizationPermissionMismatch", "sas", "", "sp=rl"),
        ("AuthorizationFailure", "identity", "", "forbid it; 10.1.2.3, a private address"),
        ("AuthorizationFailure", "sas", "", "the scope of the SAS"),
        ("AuthorizationSourceIPMismatch", "sas", "", "sip="),
        ("KeyBasedAuthenticationNotPermitted", "key", "", "use an identity"),
        ("AuthenticationFailed", "sas", "Signature not valid in the specified time frame: Start", "expired"),
        ("AuthenticationFailed", "key", "The MAC signature did not match. String to sign", "rotated key"),
        ("AuthenticationFailed", "key", "Request date header too old: 'Mon'", "set it by NTP"),
        ("AuthenticationFailed", "sas", "Access policy fields can be associated with", "(si=)"),
        ("AuthenticationFailed", "sas", "", "se= and this clock"),
        ("SomethingNew", "sas", "", "access is denied"),
    ],
)
def test_each_refusal_has_its_own_remedy(code: str, kind: str, detail: str, remedy: str) -> None:
    assert remedy in told(code, kind, detail)


@pytest.mark.parametrize("url", ["http://127.0.0.1:10000/a", "http://localhost:10000/a", "https://[::1]/a"])
@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("sas", "the emulator refuses the signature: check the SAS"),
        ("key", "the emulator refuses the signature: check the key"),
        ("anonymous", "the emulator refuses a request without credential: give a SAS or a key"),
    ],
)
def test_an_emulator_is_not_said_to_have_network_rules(url: str, kind: str, remedy: str) -> None:
    said = told("AuthorizationFailure", kind, url=url)
    assert said.startswith(remedy)
    assert "network" not in said


def test_an_account_behind_a_tunnel_from_here_keeps_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    host = "a.blob.core.windows.net"
    monkeypatch.setattr("azcp_runtime.azure.forbidden._address", lambda _host: "127.0.0.1")
    said = told("AuthorizationFailure", "key", url=f"https://{host}")
    assert f"the network rules of the account forbid it; {host} is 127.0.0.1 here, a private" in said


def test_clocks_that_differ_are_the_reason() -> None:
    behind = told("AuthenticationFailed", "sas", skew_s=1200)
    assert re.fullmatch(r"this clock is 1(199|200) s behind the account's; set it by NTP", behind)
    assert "ahead of the account's" in told("InvalidAuthenticationInfo", "identity", status=401, skew_s=-900)
    assert "NTP" not in told("AuthorizationPermissionMismatch", "identity", skew_s=1200)


@pytest.mark.parametrize(
    ("asker", "detail", "code"),
    [
        (Asker("sas", expires=1.0), "", ExitCode.RESUMABLE),
        (Asker("sas"), "Signature not valid in the specified time frame", ExitCode.RESUMABLE),
        (Asker("sas", by_policy=True), "", ExitCode.RESUMABLE),
        (Asker("sas"), "Signature did not match", ExitCode.DOWNLOAD),
        (Asker("sas", expires=9e9), "", ExitCode.DOWNLOAD),
        (Asker("key", expires=1.0), "", ExitCode.DOWNLOAD),
    ],
)
def test_only_a_sas_at_its_end_leaves_a_run_to_be_resumed(asker: Asker, detail: str, code: ExitCode) -> None:
    answer = error_answer(403, "AuthenticationFailed", "Scripted.", detail)
    error = refusal("b", read_refusal(403, dict(answer.headers), answer.body.decode()), asker)
    assert error.exit_code == code
    assert "the same command goes on" in str(error) or code != ExitCode.RESUMABLE


def test_a_sas_that_has_not_begun_by_the_accounts_clock_has_not_ended() -> None:
    detail = (
        "Signature not valid in the specified time frame: Start [Mon, 01 Jun 2026 10:00:00 GMT] - "
        "Expiry [Fri, 01 Jun 2029 11:00:00 GMT] - Current [Mon, 01 Jun 2026 09:53:20 GMT]"
    )
    error = refusal("b", Refusal(403, "AuthenticationFailed", detail), Asker("sas", expires=9e9))
    assert error.exit_code == ExitCode.DOWNLOAD
    assert "begins at 2026-06-01 10:00:00 UTC (st=), and the account's clock says 2026-06-01 09:53:20" in str(
        error
    )


def test_when_a_sas_ended_is_taken_from_the_account_where_the_sas_does_not_say() -> None:
    detail = (
        "Signature not valid in the specified time frame: Start [Mon, 01 Jun 2026 10:00:00 GMT] - "
        "Expiry [Mon, 01 Jun 2026 11:00:00 GMT] - Current [Mon, 01 Jun 2026 11:00:05 GMT]"
    )
    refused = Refusal(403, "AuthenticationFailed", detail)
    assert "the SAS expired at 2026-06-01 11:00:00 UTC" in str(refusal("b", refused, Asker("sas")))
    future = str(refusal("b", Refusal(403, "AuthenticationFailed", "time frame"), Asker("sas", expires=9e9)))
    assert "the SAS expired or was withdrawn" in future
    withdrawn = Refusal(403, "AuthenticationFailed")
    told_of_policy = str(refusal("b", withdrawn, Asker("sas", by_policy=True)))
    assert "the SAS expired or was withdrawn" in told_of_policy
