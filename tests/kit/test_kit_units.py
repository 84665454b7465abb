"""Sizes and rates are read and written as people do."""

from __future__ import annotations

import pytest
from azcp_kit.units import format_rate, format_seconds, format_size, parse_rate, parse_size
from azcp_runtime.contract import UsageError, units
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("1536", 1536),
        ("1B", 1),
        ("16MiB", 16 * 2**20),
        ("1.5GB", 1_500_000_000),
        (" 2 kB ", 2000),
        ("1KiB", 1024),
        ("16mib", 16 * 2**20),
        ("16M", 16_000_000),
        ("1PiB", 2**50),
    ],
)
def test_a_size_is_read_in_bytes(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["", "0", "0.0GB", "-1MiB", "1e9", "GiB", "1 GiB/s", "inf"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size|nothing at all"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("50Gbps", 6.25e9),
        ("50Gb/s", 6.25e9),
        ("50Gbit/s", 6.25e9),
        ("500MiB/s", 500 * 2**20),
        ("2GB/s", 2e9),
        ("2GBps", 2e9),
        ("0.4 Tbps", 5e10),
        ("50 gbps", 6.25e9),
        ("8b/s", 1),
    ],
)
def test_a_rate_in_bits_or_bytes_is_read_in_bytes_per_second(text: str, bytes_per_s: float) -> None:
    assert parse_rate(text) == bytes_per_s


@pytest.mark.parametrize("text", ["", "0Gbps", "50", "50G", "50GB", "-1Gbps", "nanGbps", "50GBPS"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a rate|less than a byte"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1536 * 2**20, "1.50 GiB"), (2**20 - 1, "1.00 MiB")],
)
def test_a_size_is_written_with_three_figures(size_bytes: int, text: str) -> None:
    assert format_size(size_bytes) == text


@pytest.mark.parametrize(
    ("bytes_per_s", "text"),
    [
        (0, "0.00 b/s"),
        (2.5e10, "200 Gb/s"),
        (124_999_999, "1.00 Gb/s"),
        (5e10, "400 Gb/s"),
        (1.25e12, "10.0 Tb/s"),
    ],
)
def test_a_rate_is_written_in_decimal_bits(bytes_per_s: float, text: str) -> None:
    assert format_rate(bytes_per_s) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.417, "0.42 s"), (36.1, "36.1 s"), (99.96, "1 min 40 s"), (725, "12 min 5 s"), (12_000, "3 h 20 min")],
)
def test_a_duration_is_written_in_the_units_that_suit_it(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@given(st.integers(min_value=1, max_value=2**60))
def test_a_size_in_plain_bytes_is_read_as_itself(size_bytes: int) -> None:
    assert parse_size(f"{size_bytes}B") == size_bytes


@given(
    st.from_regex(r"[0-9]{1,4}(\.[0-9])? ?([kKmMgGtTpP]i?)?(B|b|bit|byte)?(ps|/s)?", fullmatch=True),
)
def test_both_commands_read_a_text_alike(text: str) -> None:
    for ours, theirs in ((parse_size, units.parse_size), (parse_rate, units.parse_rate)):
        try:
            expected = theirs(text)
        except ValueError:
            expected = 0
        if expected:
            assert ours(text) == expected
        else:
            with pytest.raises(UsageError):
                ours(text)
