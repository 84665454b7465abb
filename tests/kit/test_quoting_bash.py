"""A text in a batch script stays one word, and nothing in it ends a line."""

from __future__ import annotations

import subprocess

import pytest
from azcp_kit.quoting.bash import bash_word
from azcp_runtime.contract import UsageError
from hypothesis import given, settings
from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
HARD = [
    "",
    "a b",
    "it's",
    '"',
    "$x `id` \\",
    "a,b",
    "l\nn\r\n1",
    "\x012",
    "\x7f",
    "\x9b",
    "é\u2028",
    "-n",
    "*?[",
]


@settings(deadline=None, max_examples=30)
@given(st.lists(TEXT | st.sampled_from(HARD), min_size=1))
def test_bash_passes_each_word_on_as_it_is(words: list[str]) -> None:
    script = f"printf '%s\\0' {' '.join(map(bash_word, words))}"
    assert not {"\n", "\r"} & set(script)
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == words


def test_a_plain_word_stays_readable() -> None:
    assert bash_word("--memory") == "--memory"
    assert bash_word("a b") == "'a b'"
    assert bash_word("a,b") == "'a,b'"


@pytest.mark.parametrize(("text", "told"), [("a\0b", "has a NUL in it"), ("\udcff", "is not valid UTF-8")])
def test_what_no_word_can_hold_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        bash_word(text)
