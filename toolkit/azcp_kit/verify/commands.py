"""Runs what a base answers about itself in the base and in the image: the answers must be the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from azcp_kit.engine import Engine
from azcp_kit.inspect.detect_config import detect_config
from azcp_kit.inspect.files import ImageTree
from azcp_kit.inspect.search_path import folders
from azcp_kit.inspect.stored import StoredImage
from azcp_kit.shown import shown
from azcp_kit.verify.container import Ended, Program, run
from azcp_kit.verify.verification import Check, Outcome, not_applicable, ok

QUESTIONS: Final[tuple[tuple[str, ...], ...]] = (
    ("python3", "-V"),
    ("python3", "-m", "pip", "freeze"),
    ("mpirun", "--version"),
    ("ldconfig", "-p"),
)
# Where ldconfig is, which is not on the PATH of every user.
_MORE_FOLDERS: Final = ("/usr/sbin", "/sbin")
_REMEDY: Final = "build again; a file of the base was changed, or a package brought another one"

Ask = Callable[[StoredImage, tuple[str, ...]], Ended]


@dataclass(frozen=True, slots=True)
class Programs:
    """Which of the programs an image has, by name; only the path is kept."""

    image: StoredImage
    paths: tuple[tuple[str, str], ...]

    def path(self, name: str) -> str:
        """Where it is; empty where it is not."""
        return dict(self.paths).get(name, "")


def compare_commands(
    engine: Engine, image: StoredImage, base: StoredImage, *, has_packages: bool
) -> list[Check]:
    """A check for each question, asked with the base's own ENV and USER.

    Args:
        engine: that runs them.
        image: the injected one.
        base: what it was made from.
        has_packages: packages may add libraries to the loader's cache, and take none away.
    """

    def ask(asked: StoredImage, argv: tuple[str, ...]) -> Ended:
        return run(engine, asked.identity.id, Program(argv))

    now, before = find_programs(engine, image), find_programs(engine, base)
    return [
        _compare(question, now, before, ask, may_grow=has_packages and question[0] == "ldconfig")
        for question in QUESTIONS
    ]


def find_programs(engine: Engine, image: StoredImage) -> Programs:
    """Look for the programs along PATH, without running anything."""
    places = dict.fromkeys([*folders(detect_config(image.config).env), *_MORE_FOLDERS])
    with engine.probe(image) as files:
        tree = ImageTree(files)
        found = [
            (name, next((f"{place}/{name}" for place in places if tree.is_program(f"{place}/{name}")), ""))
            for name in dict.fromkeys(question[0] for question in QUESTIONS)
        ]
    return Programs(image, tuple(found))


def _compare(
    question: tuple[str, ...], now: Programs, before: Programs, ask: Ask, *, may_grow: bool
) -> Check:
    name, (program, *arguments) = f"base {' '.join(question)}", question
    path = before.path(program)
    if now.path(program) != path:
        places = shown(now.path(program)) or "not there", shown(path) or "not there"
        return Check(name, Outcome.FAIL, f"{program} is {places[0]}, was {places[1]}", _REMEDY)
    if not path:
        return not_applicable(name, f"the base has no {program}")
    argv = (path, *arguments)
    first = ask(before.image, argv)
    answer = ask(now.image, argv)
    if answer == first or (may_grow and has_grown(answer, first)):
        return ok(name, _summary(first))
    if ask(before.image, argv) != first:
        return not_applicable(name, "the base itself does not answer twice the same")
    return Check(name, Outcome.FAIL, f"another answer than the base's, which is {_summary(first)}", _REMEDY)


def has_grown(now: Ended, before: Ended) -> bool:
    """Whether every line after the first, which counts them, is still there."""
    lines = before.stdout.splitlines()[1:]
    return now.status == before.status and set(lines) <= set(now.stdout.splitlines())


def _summary(ended: Ended) -> str:
    lines = (ended.stdout or ended.stderr).decode("utf-8", "replace").strip().splitlines()
    if not lines:
        return shown(ended.problem) or f"no output, status {ended.status}"
    more = f" and {len(lines) - 1} more lines" if len(lines) > 1 else ""
    return shown(lines[0], 80) + more
