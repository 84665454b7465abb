"""The rules as a set: their names are unique, and each is one that a test has seen speak."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Final

from azcp_kit.lint import check, rules
from azcp_kit.lint.finding import Rule

MODULES: Final = [check, *(found for found in vars(rules).values() if isinstance(found, ModuleType))]
RULES: Final = [found for module in MODULES for found in vars(module).values() if isinstance(found, Rule)]


def test_each_rule_has_a_name_of_its_own() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert len({name[:4] for name in names}) == len(names)
    assert all(re.fullmatch(r"[KS]\d{3}(?:-[a-z0-9]+)+", name) for name in names)


def test_each_rule_says_why_and_how_to_mend_it_in_one_line() -> None:
    assert all(
        text and "\n" not in text and not text.endswith(".")
        for rule in RULES
        for text in (rule.why, rule.fix)
    )


def test_each_rule_is_seen_to_speak_by_a_test() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_lint_*.py"))
    assert [rule.name for rule in RULES if rule.name[:4] not in tests] == []
