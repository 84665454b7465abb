"""Amounts in a manifest or on a command line; what is none, or not known yet, is left to others."""

from __future__ import annotations

from azcp_runtime.contract import units

from azcp_kit import quantity


def quantity_bytes(text: str) -> int | None:
    """Bytes of a Kubernetes quantity; None for what is none."""
    try:
        return quantity.quantity_bytes(text)
    except ValueError:
        return None


def size_bytes(text: str | None) -> int | None:
    """Bytes of a size on azcp's command line; None for what is none or not known."""
    if text is None:
        return None
    try:
        return units.parse_size(text)
    except ValueError:
        return None
