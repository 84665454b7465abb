"""What `azcp-kit rehearse` does with its options."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import ExitCode, UsageError

from azcp_kit.rehearse.outcome import Outcome
from azcp_kit.rehearse.request import RehearseRequest, Until, parse_images, parse_kills, parse_late
from azcp_kit.units import format_seconds, parse_size

_LONGEST_MANIFEST_BYTES: Final = 8 << 20
_WIDTH: Final = 140
"""Of the table where no terminal has one."""
STANDARD_INPUT: Final = "-"
Report = Callable[[float, str, str], None]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RehearseCommand:
    """The options of `rehearse`; None or nothing for what was not given.

    Args:
        manifest: a file, or - for standard input.
        nodes: --nodes.
        images: --image, several times.
        pulls: --pull.
        timeout_s: --timeout.
        size: --size, of the data set.
        until: --until, end or distributed.
        late, kills: --late and --kill, several times.
        as_json: --json.
    """

    manifest: Path
    nodes: int | None
    images: tuple[str, ...]
    pulls: bool
    timeout_s: float
    size: str
    until: str
    late: tuple[str, ...]
    kills: tuple[str, ...]
    as_json: bool


def run_rehearse(command: RehearseCommand) -> int:
    """Rehearse, and print the outcome on standard output; each step goes to standard error.

    Returns:
        0 where every pod did what it is there for and the data is the same everywhere; else 8 or 7.

    Raises:
        AzcpError: an option or the manifest is wrong, or something that it takes is missing.
    """

    def report(at_s: float, pod: str, what: str) -> None:
        log.info("%8s  %s: %s", format_seconds(at_s), pod, what)

    outcome = _outcome(_request(command), report)
    if command.as_json:
        sys.stdout.write(outcome.to_json())
    else:
        from rich.console import Console

        from azcp_kit.rehearse.table import print_outcome

        width = None if sys.stdout.isatty() else _WIDTH
        print_outcome(outcome, Console(highlight=False, soft_wrap=True, width=width))
    return outcome.exit_code if outcome.exit_code is not ExitCode.DONE else 0


def _outcome(request: RehearseRequest, report: Report) -> Outcome:
    from azcp_kit.rehearse.slurm.script import is_batch_script

    if is_batch_script(request.manifest):
        from azcp_kit.rehearse.slurm.run import rehearse_script

        return rehearse_script(request, report)
    from azcp_kit.rehearse.run import rehearse

    return rehearse(request, report)


def _request(command: RehearseCommand) -> RehearseRequest:
    if command.until not in {until.value for until in Until}:
        raise UsageError(f"--until {command.until} is neither end nor distributed")
    if command.timeout_s <= 0:
        raise UsageError("--timeout must be more than nothing")
    return RehearseRequest(
        manifest=read_manifest(command.manifest),
        nodes=command.nodes,
        images=parse_images(command.images),
        pulls=command.pulls,
        timeout_s=command.timeout_s,
        size_bytes=parse_size(command.size),
        until=Until(command.until),
        late=parse_late(command.late),
        kills=parse_kills(command.kills),
    )


def read_manifest(path: Path) -> str:
    """The text of a manifest.

    Raises:
        UsageError: it cannot be read, is no text or far too long.
    """
    try:
        if str(path) == STANDARD_INPUT:
            content = sys.stdin.buffer.read(_LONGEST_MANIFEST_BYTES + 1)
        else:
            with path.open("rb") as file:
                content = file.read(_LONGEST_MANIFEST_BYTES + 1)
        return content.decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text in UTF-8") from error
