"""What a test may need from the machine, and what happens where that is missing."""

from __future__ import annotations

import os
from typing import Final, NoReturn

import pytest

KINDS: Final = ("azurite", "browser", "docker", "slurm")
VARIABLE: Final = "AZCP_TEST_REQUIRE"


def required_kinds() -> frozenset[str]:
    """The kinds that must not be skipped, from the environment.

    Raises:
        pytest.UsageError: a kind that does not exist, which would require nothing.
    """
    kinds = {word.strip() for word in os.environ.get(VARIABLE, "").split(",")} - {""}
    if unknown := sorted(kinds - set(KINDS)):
        raise pytest.UsageError(f"{VARIABLE} names {', '.join(unknown)}; it knows {', '.join(KINDS)}")
    return frozenset(kinds)


def missing(kind: str, reason: str) -> NoReturn:
    """Skip the test for want of `kind`, or fail it where that kind is required."""
    if kind in required_kinds():
        pytest.fail(f"{VARIABLE} requires {kind}: {reason}", pytrace=False)
    pytest.skip(reason)
