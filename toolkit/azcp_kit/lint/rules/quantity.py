"""Quantities of Kubernetes (64Gi, 500M, 1e9) in bytes; the kit's own sizes are read elsewhere."""

from __future__ import annotations

import re
from typing import Final

from azcp_runtime.contract import units

_QUANTITY: Final = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([numkKMGTPE]i?|[eE]\d{1,2})?")
_SUFFIXES: Final = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3} | {
    f"{prefix}{binary}": (1024.0 if binary else 1000.0) ** power
    for power, prefix in enumerate("KMGTPE", 1)
    for binary in ("", "i")
}


def quantity_bytes(text: str) -> int | None:
    """Bytes of a quantity; None for what is none."""
    match = _QUANTITY.fullmatch(text)
    if not match:
        return None
    suffix = match[2] or ""
    is_exponent = suffix[:1] in {"e", "E"} and suffix[1:].isdigit()
    factor = 10.0 ** int(suffix[1:]) if is_exponent else _SUFFIXES.get(suffix)
    return None if factor is None else round(float(match[1]) * factor)


def size_bytes(text: str | None) -> int | None:
    """Bytes of a size on azcp's command line; None for what is none or not known."""
    if text is None:
        return None
    try:
        return units.parse_size(text)
    except ValueError:
        return None
