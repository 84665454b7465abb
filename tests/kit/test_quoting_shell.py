"""A text in a script stays one word, whatever is in it."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from azcp_kit.quoting.shell import shell_word
from azcp_runtime.contract import UsageError
from hypothesis import given
from hypothesis import strategies as st

WORDS = [
    "",
    "plain",
    "two words",
    "it's",
    "''\"\"",
    "$HOME ${x} $(id) `id`",
    "a;b|c&d>e<f",
    "*?[a]~!^",
    "back\\slash\\",
    "line\nbreak\r",
    "tab\t#no comment",
    "-n",
    "{{ x }}",
    "é日\u2028",
    "\x01\x7f",
]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_a_word_is_split_back_into_itself(text: str) -> None:
    assert shlex.split(shell_word(text)) == [text]


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_shell_passes_each_word_on_as_it_is(shell: str) -> None:
    script = f"printf '%s\\0' {' '.join(shell_word(word) for word in WORDS)}"
    done = subprocess.run([shell, "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == WORDS


def test_a_plain_word_stays_readable() -> None:
    assert shell_word("/mnt/nvme/llama-3.1") == "/mnt/nvme/llama-3.1"


@pytest.mark.parametrize(("text", "told"), [("a\0b", "has a NUL in it"), ("\udcff", "is not valid UTF-8")])
def test_what_no_word_can_hold_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        shell_word(text)
