"""Sizes and rates as people write them (16MiB, 50Gbps, 500MiB/s), read into bytes and written back."""

from __future__ import annotations

from typing import Final

from azcp_runtime.contract import UsageError, units

_BITS_PER_BYTE: Final = 8


def parse_size(text: str) -> int:
    """Bytes in `text`: 1536, 16MiB, 1.5GB.

    Raises:
        UsageError: it is no size, or nothing at all.
    """
    try:
        size_bytes = units.parse_size(text)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if size_bytes == 0:
        raise UsageError(f"{text!r} is nothing at all", remedy="write 16MiB or 1.5GB")
    return size_bytes


def parse_rate(text: str) -> int:
    """Bytes per second in `text`: 50Gbps and 50Gb/s are bits, 500MiB/s and 2GBps are bytes.

    Raises:
        UsageError: it is no rate, or less than a byte per second.
    """
    try:
        return units.parse_rate(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def format_size(size_bytes: float) -> str:
    """A size in binary units with three figures: 1.50 GiB."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1023.5:  # noqa: PLR2004 - what would round to 1024
            return f"{value:.0f} B" if unit == "B" else f"{_three_figures(value)} {unit}"
        value /= 1024
    return f"{_three_figures(value)} PiB"


def format_rate(bytes_per_s: float) -> str:
    """A rate in decimal bits, as links and accounts are sold: 200 Gb/s."""
    value = bytes_per_s * _BITS_PER_BYTE
    for unit in ("b/s", "kb/s", "Mb/s", "Gb/s"):
        if value < 999.5:  # noqa: PLR2004 - what would round to 1000
            return f"{_three_figures(value)} {unit}"
        value /= 1000
    return f"{_three_figures(value)} Tb/s"


def format_seconds(seconds: float) -> str:
    """A duration: 0.42 s, 36.1 s, 12 min 5 s, 3 h 20 min."""
    if seconds < 99.95:  # noqa: PLR2004 - what would round to 100.0
        return f"{_three_figures(seconds)} s"
    minutes, rest_s = divmod(round(seconds), 60)
    hours, rest_min = divmod(minutes, 60)
    return f"{hours} h {rest_min} min" if hours else f"{minutes} min {rest_s} s"


def _three_figures(value: float) -> str:
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0  # noqa: PLR2004 - where a figure is gained
    return f"{value:.{decimals}f}"
