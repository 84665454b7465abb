"""What the proof of an image comes to: its checks, each with what was found and what to do."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

from azcp_runtime.contract import VerifyError

from azcp_kit.shown import shown

SCHEMA: Final = 1
"""Version of the JSON."""

_MOST: Final = 6


class Outcome(StrEnum):
    """How a check ends."""

    OK = "ok"
    FAIL = "fail"
    NOT_APPLICABLE = "not applicable"
    """It says nothing about this image, and `found` tells why."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check; its texts are fit for a terminal.

    Args:
        name: what was looked at.
        outcome: how it ended.
        found: what is there, in words.
        remedy: what to do; empty where nothing is to be done.
    """

    name: str
    outcome: Outcome
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """The whole proof.

    Args:
        image: as it was named.
        id: of the image.
        base: as it was named or found; empty where there is none.
        added_bytes: of the files in the added layers; None where the base is not known.
        added_layers: how many there are; None likewise.
        checks: in the order in which they were made.
    """

    image: str
    id: str
    base: str
    added_bytes: int | None
    added_layers: int | None
    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.outcome is Outcome.FAIL)

    def to_json(self) -> str:
        """For scripts."""
        return json.dumps({"schema": SCHEMA, "ok": not self.failed, **asdict(self)}, indent=2) + "\n"

    def expect_success(self) -> None:
        """Nothing, if the image may be used.

        Raises:
            VerifyError: a check failed; the checks are named, and the first remedy.
        """
        if not self.failed:
            return
        raise VerifyError(
            f"{shown(self.image)} is not as it should be: {', '.join(check.name for check in self.failed)}",
            cause=self.failed[0].found,
            remedy=self.failed[0].remedy,
        )


def ok(name: str, found: str) -> Check:
    """It is as it should be."""
    return Check(name, Outcome.OK, found)


def not_applicable(name: str, why: str) -> Check:
    """Nothing can be said."""
    return Check(name, Outcome.NOT_APPLICABLE, why)


def judged(name: str, problems: tuple[str, ...], otherwise: str, remedy: str) -> Check:
    """Ok without problems; else a failure that names the first few."""
    if not problems:
        return ok(name, otherwise)
    more = f"; and {len(problems) - _MOST} more" if len(problems) > _MOST else ""
    return Check(name, Outcome.FAIL, "; ".join(problems[:_MOST]) + more, remedy)
