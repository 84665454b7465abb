"""One answer of the self test: ok, or what is wrong and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

from azcp_runtime.contract.selftest import Status, Subject

_MOST: Final = 6


@dataclass(frozen=True, slots=True)
class Answer:
    """What came out.

    Args:
        name: what was to be proved.
        status: whether it was.
        found: in words.
        remedy: what to do; empty where nothing is to be done.
    """

    name: Subject
    status: Status
    found: str
    remedy: str = ""

    def line(self, mark: str) -> str:
        """As the toolkit reads it; the base's own noise does not begin with the mark."""
        return f"{mark} {json.dumps(asdict(self))}"


def ok(name: Subject, found: str) -> Answer:
    """It holds."""
    return Answer(name, Status.OK, found)


def fail(name: Subject, problems: Iterable[str], remedy: str) -> Answer:
    """It does not; the first few problems are named."""
    listed = list(problems)
    more = f"; and {len(listed) - _MOST} more" if len(listed) > _MOST else ""
    return Answer(name, Status.FAIL, "; ".join(listed[:_MOST]) + more, remedy)
