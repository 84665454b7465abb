"""The axes of the picture: round scales, marks on the time axis, and values as SVG path data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

VIEW_WIDTH: Final = 1000
VIEW_HEIGHT: Final = 100
SLACK: Final = 1e-9
"""A rate that is above a round one by rounding alone needs no higher scale."""


@dataclass(frozen=True)
class Tick:
    """A mark on the time axis, at a percentage of its width."""

    place: str
    label: str


def nice_ceiling(bytes_per_s: float) -> float:
    """The least rate of 1, 2, 4, 5 or 8 times a power of ten bits per second that is not below this one."""
    if bytes_per_s <= 0:
        return 1.0
    bits_per_s = bytes_per_s * 8
    power = 10.0 ** math.floor(math.log10(bits_per_s))
    steps = (1, 2, 4, 5, 8, 10)
    return next((step * power for step in steps if step * power >= bits_per_s * (1 - SLACK)), 10 * power) / 8


def time_ticks(end_s: float) -> tuple[Tick, ...]:
    """Marks at round times, about five of them, and never so near the end that labels touch."""
    if end_s <= 0:
        return (Tick("0.00", "0 s"),)
    power = 10.0 ** math.floor(math.log10(end_s / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power * 6 >= end_s)
    count = int(end_s / step * 1.0001)
    return tuple(
        Tick(f"{100 * step * index / end_s:.2f}", f"{step * index:.3g} s") for index in range(count + 1)
    )


def step_path(shares: Sequence[float]) -> str:
    """SVG path data of one horizontal step for each share of the height, the mean of its span of time."""
    if not shares:
        return ""
    width = VIEW_WIDTH / len(shares)
    heights = [max(0.0, VIEW_HEIGHT * (1 - share)) for share in shares]  # a full share may be a hair over 1
    steps = (f"V{height:.1f}H{(index + 1) * width:.1f}" for index, height in enumerate(heights))
    return f"M0 {VIEW_HEIGHT}{''.join(steps)}"
