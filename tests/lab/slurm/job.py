"""What `scontrol show job` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ENDED: Final = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "TIMEOUT",
)
# Their values may hold spaces, and they have a line each.
_WHOLE_LINE: Final = ("Command=", "StdErr=", "StdIn=", "StdOut=", "WorkDir=", "Comment=")


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as slurmctld sees it; `fields` has all that it says of it, by its own names."""

    number: int
    state: str
    fields: Mapping[str, str]

    @property
    def exit_code(self) -> int:
        """The batch script's own."""
        return int(self.fields["ExitCode"].partition(":")[0])

    @property
    def restarts(self) -> int:
        """How often it has been requeued."""
        return int(self.fields["Restarts"])

    @property
    def reason(self) -> str:
        """Why it does not run."""
        return self.fields["Reason"]

    @property
    def output_file(self) -> Path:
        """Where its standard output goes."""
        return Path(self.fields["StdOut"])


def parse(text: str) -> JobRecord:
    """Read the output of `scontrol show job NUMBER`."""
    words: list[str] = []
    for line in (line.strip() for line in text.splitlines()):
        words += [line] if line.startswith(_WHOLE_LINE) else line.split()
    pairs = (word.partition("=") for word in words)
    fields = {name: value for name, _, value in pairs}
    return JobRecord(int(fields["JobId"]), fields["JobState"], fields)
