"""RDMA that a job requires: containers have none, so that the option is left out of what they run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

REQUIRE_RDMA: Final = "--require-rdma"
WHY_WITHOUT: Final = "left out, since there is only TCP between containers; on the cluster TCP ends the job"

_PROGRAM: Final = re.compile(r"\bazcp-(?:launch|distribute)\b")
_IN_TEXT: Final = re.compile(rf"(?<![^\s(])(['\"]?){REQUIRE_RDMA}\1(?![^\s;)])")


def requires_rdma(words: Sequence[str]) -> bool:
    """Whether a command line of ours, or one in a shell's text, has the option."""
    return list(words_without_rdma(words)) != list(words)


def words_without_rdma(words: Sequence[str]) -> tuple[str, ...]:
    """A command line without the option; what comes after -- is the user's, and stays."""
    end = words.index("--") if "--" in words else len(words)
    ours = (word for word in words[:end] if word != REQUIRE_RDMA)
    return (*(text_without_rdma(word) if _PROGRAM.search(word) else word for word in ours), *words[end:])


def text_without_rdma(text: str) -> str:
    """A shell's text without the option."""
    return _IN_TEXT.sub("", text)
