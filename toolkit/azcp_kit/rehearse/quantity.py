"""Kubernetes quantities such as 64Gi, 500m and 1e3."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from azcp_runtime.contract import UsageError

from azcp_kit.shown import shown

_FORM: Final = re.compile(
    r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))((?:[eE][+-]?\d{1,3})|[numkMGTPE]|[KMGTPE]i)?", re.ASCII
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def parse_quantity(value: object, where: str) -> Decimal:
    """The number that a quantity stands for.

    Raises:
        UsageError: it is none.
    """
    text = str(value)
    match = _FORM.fullmatch(text)
    if isinstance(value, bool) or match is None:
        raise UsageError(shown(f"{where} is no quantity: {text}"), remedy="64Gi and 500m are quantities")
    number, suffix = Decimal(match[1]), match[2] or ""
    if suffix in _BINARY:
        return number * (1 << _BINARY[suffix])
    power = int(suffix[1:]) if suffix[:1] in ("e", "E") and suffix[1:] else _DECIMAL[suffix]
    return number.scaleb(power)
