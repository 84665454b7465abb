"""Kubernetes quantities, such as 64Gi, 500m and 1e3: numbers with a suffix."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

_FORM: Final = re.compile(
    r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))((?:[eE][+-]?\d{1,3})|[numkMGTPE]|[KMGTPE]i)?", re.ASCII
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MIB: Final = 1 << 20


def parse_quantity(text: str) -> Decimal:
    """The number that a quantity stands for.

    Raises:
        ValueError: it is none.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no quantity such as 64Gi or 500m")
    number, suffix = Decimal(match[1]), match[2] or ""
    if suffix in _BINARY:
        return number * (1 << _BINARY[suffix])
    power = int(suffix[1:]) if suffix[:1] in ("e", "E") and suffix[1:] else _DECIMAL[suffix]
    return number.scaleb(power)


def quantity_bytes(text: str) -> int:
    """Bytes of a quantity, rounded up.

    Raises:
        ValueError: it is none.
    """
    return math.ceil(parse_quantity(text))


def quantity(size_bytes: int) -> str:
    """Bytes as a quantity, rounded up to a mebibyte."""
    mib = -(-size_bytes // _MIB)  # a float would lose the last bytes of an exabyte
    return f"{mib // 1024}Gi" if mib % 1024 == 0 else f"{mib}Mi"
