"""What is wrong with a job.toml: every problem of it with its place, told in one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import UsageError

from azcp_kit.shown import shown

_MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend.

    Args:
        key: the full name of the key, such as ``storage.path``; empty for the file as a whole.
        what: what is wrong with it.
        remedy: what to write instead; empty where `what` says it.
    """

    key: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        """Without its place."""
        key = f"{shown(self.key)}: " if self.key else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{key}{self.what}{remedy}"


class SpecError(UsageError):
    """A job.toml with problems; each is a line of the message."""

    def __init__(self, name: str, problems: Sequence[tuple[str, Problem]]) -> None:
        """Tell them.

        Args:
            name: of the file.
            problems: the place of each, such as ``line 4``, and the problem.
        """
        self.problems = tuple(problem for _, problem in problems)
        count = f"{len(problems)} error{'s' if len(problems) > 1 else ''}"
        lines = "".join(f"\n  {place}: {problem}" for place, problem in problems[:_MOST])
        lines += f"\n  and {len(problems) - _MOST} more" if len(problems) > _MOST else ""
        super().__init__(f"{name} has {count}:{lines}")
