"""What is run for the command string that an ssh client sent."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final

from azcp_runtime.contract import UsageError
from azcp_runtime.contract.image import BIN

SHELL: Final = "/bin/sh"


def requested_argv(command: str | None, shell: str = SHELL) -> list[str]:
    """The argument list: our own commands directly, anything else through the base's shell.

    mpirun quotes its daemon's words for a shell, and shlex reads them as well: so no base needs one.
    A user's own mpirun sends more than words.

    Raises:
        UsageError: no command, or one that needs a shell where there is none.
    """
    if not command or not command.strip():
        raise UsageError("azcp-sshd runs commands only", remedy="name one; kubectl exec gives a shell")
    if words := _own_words(command):
        return words
    if not os.access(shell, os.X_OK):
        raise UsageError(
            f"the image has no {shell}, which this command needs",
            remedy=f"only commands below {BIN} are started without a shell",
        )
    return [shell, "-c", command]


def _own_words(command: str) -> list[str]:
    if not command.lstrip().startswith(f"{BIN}/"):
        return []
    try:
        words = shlex.split(command)
    except ValueError:  # an open quote: the shell has the better message
        return []
    if Path(words[0]).parent != Path(BIN):
        return []
    # Our own launcher quotes each word so that nothing in it can mean anything to a shell.
    return words if shlex.join(words) == command or not _has_operators(command) else []


def _has_operators(command: str) -> bool:
    """Whether a shell might find an operator or an expansion in it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace_split = True
    lexer.commenters = ""
    lexer.whitespace = " \t"
    return any(set(token) <= set("();<>|&\n") for token in lexer) or "`" in command or "$" in command
