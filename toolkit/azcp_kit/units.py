"""Sizes and rates as people write them (16MiB, 50Gbps, 500MiB/s), read into bytes and written back."""

from __future__ import annotations

import re
from typing import Final

from azcp_runtime.contract import UsageError

_STEP: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY_STEP: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_SIZE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:([kKMGTP]?)(i?)B)?\s*")
_RATE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kKMGTP]?)(i?)(b|bit|B)(?:ps|/s)\s*")
_BITS_PER_BYTE: Final = 8


def parse_size(text: str) -> int:
    """Bytes in `text`: 1536, 16MiB, 1.5GB.

    Raises:
        UsageError: it is no size, or nothing at all.
    """
    match = _SIZE.fullmatch(text)
    value = int(float(match[1]) * _scale(match[2] or "", match[3] or "")) if match else 0
    if value <= 0:
        raise UsageError(f"{text!r} is not a size", remedy="write 16MiB or 1.5GB")
    return value


def parse_rate(text: str) -> float:
    """Bytes per second in `text`: 50Gbps and 50Gb/s are bits, 500MiB/s and 2GB/s are bytes.

    Raises:
        UsageError: it is no rate, or it is zero.
    """
    match = _RATE.fullmatch(text)
    value = float(match[1]) * _scale(match[2], match[3]) if match else 0.0
    if match is None or value <= 0:
        raise UsageError(f"{text!r} is not a rate", remedy="write 50Gbps or 500MiB/s")
    return value if match[4] == "B" else value / _BITS_PER_BYTE


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


def _scale(prefix: str, binary: str) -> int:
    return (_BINARY_STEP if binary else _STEP)[prefix.lower()]


def _three_figures(value: float) -> str:
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0  # noqa: PLR2004 - where a figure is gained
    return f"{value:.{decimals}f}"
