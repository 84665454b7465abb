"""What `azcp-kit verify` does with its options."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from rich.console import Console

from azcp_kit.engine import connected
from azcp_kit.units import parse_size
from azcp_kit.verify.prove import verify_image
from azcp_kit.verify.table import print_verification


@dataclass(frozen=True, slots=True)
class VerifyCommand:
    """The options of `verify`; None or nothing for what was not given."""

    image: str
    base: str | None
    budget: str
    as_json: bool


def run_verify(command: VerifyCommand) -> None:
    """Verify, and print the proof on standard output.

    Raises:
        VerifyError: a check failed.
        AzcpError: an option is wrong, or the engine failed.
    """
    budget_bytes = parse_size(command.budget) if command.budget else None
    with connected() as engine:
        found = verify_image(engine, command.image, command.base, budget_bytes)
    if command.as_json:
        sys.stdout.write(found.to_json())
    else:
        print_verification(found, Console(highlight=False))
    found.expect_success()
