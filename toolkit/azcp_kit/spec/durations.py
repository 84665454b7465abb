"""Times as people write them: 90s, 10m, 4h, 1d."""

from __future__ import annotations

import re
from typing import Final

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_PART: Final = r"(\d+)([smhd])"
_LONGEST_S: Final = 2**31 - 1


def parse_duration(text: str) -> int:
    """Seconds of a time such as ``90s``, ``10m``, ``4h`` or ``1h30m``.

    Raises:
        ValueError: the text is no time, is zero, or is longer than 68 years.
    """
    if not re.fullmatch(rf"(?:{_PART})+", text.strip(), re.ASCII):
        raise ValueError(f"{text!r} is not a time such as 90s, 10m, 4h or 1h30m")
    seconds = sum(int(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text, re.ASCII))
    if not 0 < seconds <= _LONGEST_S:
        raise ValueError(f"{text!r} is no time that a cluster can wait")
    return seconds
