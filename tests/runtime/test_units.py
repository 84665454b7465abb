"""Sizes and rates as people write them."""

from __future__ import annotations

import pytest
from azcp_runtime.contract.units import format_rate, format_seconds, format_size, parse_rate, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16777216", 1 << 24),
        ("16MiB", 1 << 24),
        ("16mib", 1 << 24),
        ("16 MB", 16_000_000),
        ("32G", 32_000_000_000),
        ("32Gi", 32 << 30),
        ("1.5GiB", 3 << 29),
        ("9007199254740993", 9007199254740993),
        ("0", 0),
    ],
)
def test_a_size_takes_binary_and_decimal_units(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "abc", "-1MiB", "16XB", "1e9", "9223372036854775808", "1 2", "1MiB/s", "inf", "9000PiB"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size|larger than any file"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "bytes_per_second"),
    [
        ("50Gbps", 6_250_000_000),
        ("50gbps", 6_250_000_000),
        ("50 Gbit/s", 6_250_000_000),
        ("500MiB/s", 500 << 20),
        ("2GBps", 2 * 10**9),
        ("2GB/s", 2 * 10**9),
        ("2GiB/s", 2 << 30),
        ("2GiBps", 2 << 30),
        ("3 bytes/s", 3),
        ("8b/s", 1),
        ("8kbit/s", 1000),
        ("1mB/s", 10**6),
    ],
)
def test_a_rate_is_in_bits_or_bytes_as_its_unit_says(text: str, bytes_per_second: int) -> None:
    assert parse_rate(text) == bytes_per_second


@pytest.mark.parametrize(
    "text", ["", "50", "50GB", "-1Gbps", "1b/s", "0Gbps", "nanGbps", "1GBPS", "9999999999PB/s", "\u0663GB/s"]
)
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a rate|less than a byte|faster than"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("size", "seconds", "text"),
    [
        (413340567567, 14.01, "236.03 Gb/s"),
        (0, 0.0, "0.00 b/s"),
        (125, 1.0, "1.00 Kb/s"),
        (125_000, 1.0, "1.00 Mb/s"),
        (1, 0.0, "0.00 b/s"),
    ],
)
def test_a_rate_is_printed_in_decimal_bits(size: int, seconds: float, text: str) -> None:
    assert format_rate(size, seconds) == text


def test_a_size_is_printed_in_binary_units() -> None:
    assert [format_size(n) for n in (0, 1023, 1024, 3 << 29, 1 << 41)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 GiB",
        "2.0 TiB",
    ]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"),
        (299.4, "299 s"),
        (299.6, "5 min"),
        (5 * 3600 - 1, "300 min"),
        (86388, "24 h"),
        (7 * 86400, "7 days"),
    ],
)
def test_a_span_of_time_is_told_in_a_unit_that_people_count_in(seconds: float, told: str) -> None:
    assert format_seconds(seconds) == told
