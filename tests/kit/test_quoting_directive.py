"""A value in a line that sbatch reads is what sbatch gets, or is refused."""

from __future__ import annotations

import pytest
from azcp_kit.quoting.directive import sbatch_directive
from azcp_runtime.contract import UsageError
from hypothesis import given
from hypothesis import strategies as st

PRINTABLE = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=200)


def read_argument(line: str) -> str:
    """The one argument of a line, by the rules of sbatch: quotes of both kinds, backslashes, comments."""
    found, quote, escaped = [], "", False
    for character in line.removeprefix("#SBATCH").lstrip():
        if escaped:
            found.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif quote and character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote = character
        elif not quote and (character.isspace() or character == "#"):
            break
        else:
            found.append(character)
    assert not quote
    return "".join(found)


@given(PRINTABLE.filter(bool))
def test_a_value_is_read_back_as_it_was(value: str) -> None:
    line = sbatch_directive("comment", value)
    assert read_argument(line) == f"--comment={value}"
    assert "\n" not in line


def test_a_plain_value_stays_readable() -> None:
    assert sbatch_directive("nodes", "4") == "#SBATCH --nodes=4"
    assert sbatch_directive("exclusive") == "#SBATCH --exclusive"
    assert sbatch_directive("constraint", "a&b") == '#SBATCH --constraint="a&b"'


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("a\nb", "control character"),
        ("a\r", "control character"),
        ("x" * 1001, "longer than"),
        ("\udcff", "UTF-8"),
    ],
)
def test_what_no_line_can_carry_is_refused(value: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        sbatch_directive("comment", value)
