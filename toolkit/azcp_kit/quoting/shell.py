"""A text as one word of a POSIX shell."""

from __future__ import annotations

import shlex

from azcp_runtime.contract import UsageError

from azcp_kit.quoting.utf8 import expect_utf8
from azcp_kit.shown import shown


def shell_word(text: str) -> str:
    """The text, quoted where the shell would see more in it than a word.

    Raises:
        UsageError: it has a NUL, which no argument can hold, or no bytes in UTF-8.
    """
    if "\0" in text:
        raise UsageError(f"'{shown(text, 80)}' has a NUL in it, which no shell can pass on")
    expect_utf8(text)
    return shlex.quote(text)
