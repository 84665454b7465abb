"""Runs the image's own self test as several users, and reads its answers."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from azcp_runtime.contract.image import ENV_STATE_DIR, PYTHON
from azcp_runtime.contract.selftest import ANSWER_FIELDS, MODULE, Status, Subject

from azcp_kit.engine import Engine
from azcp_kit.inspect.facts import Account
from azcp_kit.shown import shown
from azcp_kit.verify.container import Ended, Program, run
from azcp_kit.verify.verification import Check, Outcome

_STATE: Final = "/azcp-verify"
_TMPFS: Final = {_STATE: "size=256m,mode=1777"}
_SEPARATION: Final = "/run"
"""Where OpenSSH makes a folder for its privilege separation."""

_LIMIT_S: Final = 300.0
_TAIL: Final = 600
_EVERY: Final = (Subject.DISTRIBUTE, Subject.SSHD, Subject.PROCESSES)
_NOBODY: Final = "54321:54321"
_REMEDY: Final = "build the image again with this azcp-kit"


@dataclass(frozen=True, slots=True)
class Runner:
    """As whom the self test runs.

    Args:
        user: as USER writes it.
        name: for people.
        subjects: what is proved.
        tmpfs: the writable folders, and their mount options.
    """

    user: str
    name: str
    subjects: tuple[Subject, ...]
    tmpfs: Mapping[str, str] = field(default_factory=lambda: dict(_TMPFS))


def runners(user: str, account: Account, ssh: str) -> tuple[Runner, Runner]:
    """Root, who looks at all libraries too, and the base's user; where that is root, a uid without a name.

    Args:
        user: as the base's USER writes it.
        account: what its passwd says of that user.
        ssh: bundled, or base for OpenSSH, which wants more of its surroundings.
    """
    is_bundled = ssh == "bundled"
    tmpfs = _TMPFS if is_bundled else {**_TMPFS, _SEPARATION: ""}
    root = Runner("0:0", "root", (Subject.LIBRARIES, *_EVERY), tmpfs)
    other, name = (_NOBODY, "uid 54321") if account.uid == 0 else (user, f"USER {shown(user)}")
    has_entry = bool(account.name) and account.uid != 0
    subjects = tuple(each for each in _EVERY if each is not Subject.SSHD or is_bundled or has_entry)
    return root, Runner(other, name, subjects, tmpfs)


def run_self_test(engine: Engine, image_id: str, runner: Runner) -> list[Check]:
    """A check for each subject.

    Raises:
        PreflightError: the engine failed.
    """
    # The base's own noise cannot know it.
    mark = secrets.token_hex(8)
    argv = (PYTHON, "-I", "-m", MODULE, mark, *(subject.value for subject in runner.subjects))
    program = Program(argv, runner.user, {ENV_STATE_DIR: _STATE}, runner.tmpfs, _LIMIT_S)
    return checks_of(run(engine, image_id, program), mark, runner)


def checks_of(ended: Ended, mark: str, runner: Runner) -> list[Check]:
    """The answers as checks; what has none failed, with what was said last."""
    answers = dict(_answers(ended.stdout.splitlines(), mark))
    return [
        _check(f"{subject} as {runner.name}", answers.get(subject.value), ended)
        for subject in runner.subjects
    ]


def _check(name: str, answer: dict[str, str] | None, ended: Ended) -> Check:
    if answer is None:
        said = (ended.stderr or ended.stdout)[-_TAIL:].decode("utf-8", "replace").strip()
        how = shown(ended.problem) or f"status {ended.status}"
        return Check(name, Outcome.FAIL, f"no answer, {how}: {shown(said, _TAIL)}", _REMEDY)
    outcome = Outcome.OK if answer["status"] == Status.OK else Outcome.FAIL
    return Check(name, outcome, shown(answer["found"], _TAIL), shown(answer["remedy"]))


def _answers(lines: Iterable[bytes], mark: str) -> Iterator[tuple[str, dict[str, str]]]:
    for line in lines:
        if not line.startswith(f"{mark} ".encode()):
            continue
        try:
            found = json.loads(line[len(mark) :])
        except ValueError:
            continue
        if isinstance(found, dict) and all(isinstance(found.get(each), str) for each in ANSWER_FIELDS):
            yield found["name"], found
