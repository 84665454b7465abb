"""Brings the answers together: options first, then questions where somebody can answer, then defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from azcp_runtime.contract import UsageError

from azcp_kit.init.purpose import KUBERNETES, Purpose
from azcp_kit.init.questions import AUTH, MAY_BE_EMPTY, Answers, Question
from azcp_kit.init.text import completed
from azcp_kit.shown import shown
from azcp_kit.spec.problems import Problem, SpecError
from azcp_kit.spec.read import parse_job

Ask = Callable[[str], str]
"""Shows a prompt, gives the line that was typed; raises EOFError at the end of the input."""


def settle(given: Answers, ask: Ask | None, purpose: Purpose = KUBERNETES) -> dict[str, str]:
    """Every answer.

    Args:
        given: by options, by the key of the question.
        ask: None where nobody can answer.
        purpose: has the questions.

    Raises:
        UsageError: options are wrong, all of which are named; or the input ended.
    """
    said = _with_way(given, purpose)
    _expect_right(said, purpose)
    if ask is None:
        return completed(said, purpose.questions)
    answers: dict[str, str] = {}
    for question in purpose.questions:
        if question.applies(answers):
            value = said.get(question.key)
            answers[question.key] = _asked(question, answers, ask, purpose) if value is None else value
    return answers


def wrong(question: Question, value: str, answers: Answers, purpose: Purpose) -> str:
    """What is wrong with an answer, by what reads job.toml later; empty where nothing is."""
    if what := question.check(value):
        return f"'{shown(value, 80)}' {what}"
    try:
        full = completed({**answers, question.key: value}, purpose.questions)
        parse_job(purpose.text(full), more=purpose.checks(full))
    except SpecError as error:
        return "; ".join(_told(problem) for problem in error.problems if problem.key == question.key)
    except UsageError as error:
        return str(error)
    return ""


def _told(problem: Problem) -> str:
    return f"{problem.what}; {problem.remedy}" if problem.remedy else problem.what


def _asked(question: Question, answers: Answers, ask: Ask, purpose: Purpose) -> str:
    default = question.default(answers)
    prompt = f"{question.text} [{default}]: " if default else f"{question.text}: "
    reason = ""
    while True:
        try:
            value = ask(f"{reason}{prompt}").strip() or default
        except EOFError as error:
            remedy = f"give {question.flag}" if question.flag else ""
            raise UsageError(
                f"the input ended before an answer to: {question.text}", remedy=remedy
            ) from error
        what = wrong(question, value, answers, purpose) if value else ""
        if not what:
            return value
        reason = f"{what}\n"


def _with_way(given: Answers, purpose: Purpose) -> dict[str, str]:
    ways = [way for way, key in purpose.ways.items() if key in given]
    return {**given, AUTH: ways[0]} if ways else dict(given)


def _expect_right(said: Mapping[str, str], purpose: Purpose) -> None:
    """Check options, each with those that are right so far."""
    problems: list[str] = []
    right: dict[str, str] = {}
    for question in purpose.questions:
        value = said.get(question.key)
        if value is None:
            continue
        if not value and question.key not in MAY_BE_EMPTY:
            problems.append(f"{question.flag} is empty")
        elif not question.applies(completed({AUTH: "", **right}, purpose.questions)):
            problems.append(f"{question.flag} {question.unasked}")
        elif what := wrong(question, value, right, purpose):
            problems.append(f"{question.flag}: {what}")
        else:
            right[question.key] = value
    if problems:
        count = f"{len(problems)} option{'s are' if len(problems) > 1 else ' is'} wrong"
        raise UsageError("".join([f"{count}:", *(f"\n  {problem}" for problem in problems)]))
