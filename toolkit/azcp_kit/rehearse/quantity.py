"""Quantities of a manifest: what is none is the manifest's fault."""

from __future__ import annotations

from decimal import Decimal

from azcp_runtime.contract import UsageError

from azcp_kit import quantity
from azcp_kit.shown import shown


def parse_quantity(value: object, where: str) -> Decimal:
    """The number that a quantity stands for.

    Raises:
        UsageError: it is none.
    """
    try:
        return quantity.parse_quantity("" if isinstance(value, bool) else str(value))
    except ValueError as error:
        raise UsageError(
            shown(f"{where} is no quantity: {value}"), remedy="64Gi and 500m are quantities"
        ) from error
