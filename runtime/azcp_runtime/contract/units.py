"""Sizes and rates as people write them: 16MiB, 1GB, 50Gbps, 500MiB/s."""

from __future__ import annotations

import re
from typing import Final

_FACTORS: Final[dict[str, int]] = {
    "": 1,
    **{prefix: 1000**power for power, prefix in enumerate("kmgtp", 1)},
    **{f"{prefix}i": 1024**power for power, prefix in enumerate("kmgtp", 1)},
}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgtp]i?)?(?:b|bytes?)?", re.IGNORECASE | re.ASCII)
# The prefix may have either case, the unit may not: a capital B is a byte and a small b a bit.
_RATE: Final = re.compile(
    r"(\d+(?:\.\d+)?)\s*((?i:[kmgtp]i?))?(?:(?P<unit>[Bb])(?:ps|/s)|(?P<word>bit|byte)s?/s)", re.ASCII
)

_BITS_PER_BYTE: Final = 8
_LARGEST: Final = 1 << 63
_FEWEST_OF_A_UNIT: Final = 5


def parse_size(text: str) -> int:
    """Bytes of a size such as ``16777216``, ``16MiB`` or ``1GB``; the case does not matter.

    Raises:
        ValueError: the text is no size, is negative, or does not fit 63 bits.
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a size such as 16MiB, 1GB or 16777216")
    size = _scaled(match)
    if size >= _LARGEST:
        raise ValueError(f"{text!r} is larger than any file")
    return size


def parse_rate(text: str) -> int:
    """Bytes per second of a rate: ``50Gbps`` and ``50Gb/s`` are bits, ``2GBps`` and ``2GB/s`` bytes.

    Raises:
        ValueError: the text is no rate, is less than a byte per second, or does not fit 63 bits.
    """
    match = _RATE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a rate such as 50Gbps (bits) or 500MiB/s (bytes)")
    is_bytes = match["unit"] == "B" or match["word"] == "byte"
    rate = _scaled(match) // (1 if is_bytes else _BITS_PER_BYTE)
    if rate == 0:
        raise ValueError(f"{text!r} is less than a byte per second")
    if rate >= _LARGEST:
        raise ValueError(f"{text!r} is faster than any link")
    return rate


def format_size(size_bytes: float) -> str:
    """A size in binary units with at most one decimal, for messages."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:  # noqa: PLR2004 - the factor between binary units
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


def format_rate(size_bytes: int, seconds: float) -> str:
    """Decimal bits per second with two decimals, b/s to Gb/s, as the summary lines print them."""
    bits = size_bytes * _BITS_PER_BYTE / seconds if seconds > 0 else 0.0
    for factor, unit in ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "Kb/s")):
        if bits >= factor:
            return f"{bits / factor:.2f} {unit}"
    return f"{bits:.2f} b/s"


def format_seconds(seconds: float) -> str:
    """A span of time in its largest unit of which there are five or more, for messages: 24 h, 90 s."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if round(seconds) >= _FEWEST_OF_A_UNIT * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _scaled(match: re.Match[str]) -> int:
    number, prefix = match[1], (match[2] or "").lower()
    factor = _FACTORS[prefix]
    # Whole numbers stay exact beyond 2**53.
    return int(number) * factor if number.isdigit() else round(float(number) * factor)
