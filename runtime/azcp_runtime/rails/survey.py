"""How many rails a job can have: each node says it in one line, and the smallest number is taken."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.rails.choose import count_rails
from azcp_runtime.rails.facts import read_facts

_MARK: Final = "azcp-rails "
_NAMED: Final = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """What a node says of itself.

    Attributes:
        host: its name.
        rails: how many are good for it.
        why: where that comes from.
    """

    host: str
    rails: int
    why: str


def main() -> int:
    """azcp-rails: say it."""
    rails, why = count_rails(read_facts())
    line = _MARK + json.dumps(asdict(Answer(socket.gethostname(), rails, why)))
    print(line, flush=True)
    return 0


def read_answers(text: str, nodes: int) -> list[Answer]:
    """What all nodes said.

    Raises:
        PreflightError: some of them said nothing.
    """
    lines = [line.removeprefix(_MARK) for line in text.splitlines() if line.startswith(_MARK)]
    answers = [Answer(**json.loads(line)) for line in lines]
    if len(answers) != nodes:
        raise PreflightError(
            f"{len(answers)} of {nodes} nodes said how many rails they can have",
            remedy="give the number with --rails N",
        )
    return answers


def settle(answers: Sequence[Answer]) -> tuple[int, str]:
    """The number of rails that every node can have, and a line that says why."""
    least = min(answer.rails for answer in answers)
    few = [answer for answer in answers if answer.rails == least]
    if len(few) == len(answers):
        whys = sorted({answer.why for answer in answers})
        return least, f"--rails auto: {_many(least)} per node ({'; '.join(whys)})"
    named = ", ".join(f"{answer.host} ({answer.why})" for answer in few[:_NAMED])
    more = f" and {len(few) - _NAMED} more" if len(few) > _NAMED else ""
    most = max(answer.rails for answer in answers)
    return least, f"--rails auto: {_many(least)} per node, as {named}{more} can have, though others {most}"


def _many(rails: int) -> str:
    return f"{rails} rail{'s' if rails > 1 else ''}"
