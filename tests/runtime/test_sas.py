"""What a SAS says of itself, and what is refused before anything is asked with it."""

from __future__ import annotations

import datetime as dt
from typing import Final

import pytest
from azcp_runtime.azure.sas import check_lasts, check_sas, parse_sas, utc, when
from azcp_runtime.contract import PreflightError, UsageError

NOW: Final = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC).timestamp()
GOOD: Final = "sv=2024-11-04&st=2026-06-01T11:00:00Z&se=2026-06-01T13:00:00Z&sr=c&sp=rl&sig=x%3D"
ACCOUNT: Final = "sv=2024-11-04&ss=b&srt=co&se=2026-06-01T13:00:00Z&sp=rl&sig=x"


def problems(sas: str, *, is_https: bool = True, lists: bool = True) -> str:
    try:
        check_sas(parse_sas(sas), NOW, is_https=is_https, lists=lists)
    except PreflightError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "sas", [GOOD, ACCOUNT, "sv=2024-11-04&sr=c&si=policy&sig=x", GOOD.replace("sr=c", "sr=d&sdd=2")]
)
def test_a_good_sas_is_not_refused(sas: str) -> None:
    assert problems(sas) == ""


@pytest.mark.parametrize(
    ("sas", "told"),
    [
        (GOOD.replace("T13", "T11"), "it expired at 2026-06-01 11:00:00 UTC, and this clock says"),
        (GOOD.replace("T11:00", "T12:30"), "not valid before 2026-06-01 12:30:00 UTC"),
        (GOOD.replace("sp=rl", "sp=r"), "sp=r does not let it list (sp=l)"),
        (GOOD.replace("sp=rl", "sp=l"), "sp=l does not let it read (sp=r)"),
        (GOOD.replace("&sp=rl", ""), "does not let it read"),
        (GOOD.replace("sr=c", "sr=b"), "one blob only (sr=b)"),
        (ACCOUNT.replace("ss=b", "ss=fqt"), "not for the Blob service (ss=fqt)"),
        (ACCOUNT.replace("srt=co", "srt=o"), "not for listing a container (srt=o"),
        (ACCOUNT.replace("srt=co", "srt=c"), "not for blobs (srt=c"),
        (f"{GOOD}&ske=2026-06-01T11:59:00Z", "it expired at 2026-06-01 11:59:00 UTC"),
    ],
)
def test_what_the_service_would_refuse_is_told_first(sas: str, told: str) -> None:
    assert told in problems(sas)


def test_all_that_is_wrong_is_told_at_once() -> None:
    text = problems("sv=1&sr=b&se=2026-05-01&sp=w&spr=https&sig=x", is_https=False)
    assert text.count(";") == 5  # five problems and the remedy
    assert "it expired at 2026-05-01 00:00:00 UTC" in text
    assert "it is for https only (spr=https)" in text


def test_a_list_of_blobs_needs_no_permission_to_list() -> None:
    assert problems(GOOD.replace("sp=rl", "sp=r"), lists=False) == ""
    assert problems(GOOD.replace("sr=c", "sr=b").replace("sp=rl", "sp=r"), lists=False) == ""


@pytest.mark.parametrize("text", ["se=tomorrow&sig=x", "se=2026&se=2027&sig=x", "se=&sig=x"])
def test_a_sas_that_is_none_is_malformed_and_not_repeated(text: str) -> None:
    with pytest.raises(UsageError, match="malformed") as caught:
        parse_sas(text)
    assert "sig=" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2026-06-01", "2026-06-01 00:00:00 UTC"),
        ("2026-06-01T12:30Z", "2026-06-01 12:30:00 UTC"),
        ("2026-06-01T12:30:15.1234567Z", "2026-06-01 12:30:15 UTC"),
        ("2026-06-01T14:30:00%2B02:00", "2026-06-01 12:30:00 UTC"),
    ],
)
def test_a_time_is_read_in_each_form_that_the_service_takes(text: str, told: str) -> None:
    expires = parse_sas(f"se={text}&sig=x").expires
    assert expires is not None
    assert utc(expires) == told


def test_a_sas_that_cannot_last_is_refused() -> None:
    with pytest.raises(PreflightError, match="in 5 s, before 9.5 MiB") as caught:
        check_lasts(NOW + 5, NOW, 10_000_000, 1, 1_000_000)
    assert "10 s at least" in str(caught.value)


def test_the_end_of_a_sas_is_told_in_hours_where_it_is_hours_away() -> None:
    assert when(NOW + 86388, NOW).endswith(" UTC, in 24 h")
    assert when(NOW - 5, NOW).endswith(" UTC, in 0 s")
    assert "may take 28 h" in check_lasts(NOW + 86388, NOW, 10**14, 1, None)


def test_a_sas_that_may_not_last_is_warned_of() -> None:
    assert "may take 100 s" in check_lasts(NOW + 50, NOW, 100 * 10**9, 1, None)
    assert check_lasts(NOW + 3600, NOW, 100 * 10**9, 1, None) == ""
    assert check_lasts(NOW + 50, NOW, 100 * 10**9, 4, None) == ""
