"""What follows from a base's facts, before anything is built."""

from __future__ import annotations

from dataclasses import dataclass

from azcp_kit.image.plan import Wishes, plan_injection, plan_lines
from azcp_kit.inspect.facts import ImageFacts
from azcp_kit.inspect.refuse import refusals


@dataclass(frozen=True)
class Conclusion:
    """What follows from the facts; one of the two is empty."""

    refused: tuple[str, ...]
    plan: tuple[str, ...]


def conclude(facts: ImageFacts, arch: str = "") -> Conclusion:
    """Why the base is refused or, where it is not, what a build with default options does to it."""
    if reasons := refusals(facts, arch=arch):
        return Conclusion(tuple(reason.what for reason in reasons), ())
    return Conclusion((), tuple(plan_lines(plan_injection(facts, Wishes()))))
