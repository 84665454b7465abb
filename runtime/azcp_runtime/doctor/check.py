"""What every examination gives: a check with its status, what was found and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from azcp_runtime.contract.units import format_size

Unit = Literal["bytes", "bytes/s"]

_GIGA: Final = 1e9


class Status(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number that differs a little from node to node, so that it does not keep nodes apart in the table."""

    value: int
    unit: Unit


@dataclass(frozen=True, slots=True)
class Check:
    """One finding on one node.

    Attributes:
        name: what was looked at.
        status: ok, warn or fail.
        found: what is there, in words; text of others is in it only as `shown`.
        remedy: what to do; empty where nothing is to be done.
        amount: what was measured, where something was.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""
    amount: Amount | None = None


def ok(name: str, found: str, amount: Amount | None = None) -> Check:
    """Nothing to be done."""
    return Check(name, Status.OK, found, "", amount)


def warn(name: str, found: str, remedy: str, amount: Amount | None = None) -> Check:
    """A run works, but slower or on more luck than it should."""
    return Check(name, Status.WARN, found, remedy, amount)


def fail(name: str, found: str, remedy: str, amount: Amount | None = None) -> Check:
    """A run would fail, or not do what was asked for."""
    return Check(name, Status.FAIL, found, remedy, amount)


def without_rdma(name: str, found: str, remedy: str, *, is_required: bool) -> Check:
    """Something keeps RDMA away: a failure only where it was asked for."""
    return Check(name, Status.FAIL if is_required else Status.WARN, found, remedy)


def amount_text(low: Amount, high: Amount) -> str:
    """One number, or the span of several nodes' numbers."""
    texts = [_text(each) for each in (low, high)]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} to {texts[1]}"


def few(names: list[str], most: int = 8) -> str:
    """Names in a row, cut where there are many."""
    more = f" ... ({len(names)})" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _text(amount: Amount) -> str:
    if amount.unit == "bytes":
        return format_size(amount.value)
    return f"{amount.value / _GIGA:.2f} GB/s"
