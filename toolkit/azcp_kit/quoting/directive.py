"""An option as a line that sbatch reads from its script."""

from __future__ import annotations

import re
from typing import Final

from azcp_runtime.contract import UsageError

from azcp_kit.quoting.utf8 import expect_utf8
from azcp_kit.shown import shown

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.,:/+@%=^-]+", re.ASCII)
_LONGEST_BYTES: Final = 1000
"""sbatch reads a script's lines into a buffer of its own; a longer option is nobody's wish."""


def sbatch_directive(name: str, value: str = "") -> str:
    """One ``#SBATCH`` line.

    Args:
        name: of the option, without its dashes.
        value: of it; empty for an option that takes none.

    Raises:
        UsageError: no such line can carry the value.
    """
    if not value:
        return f"#SBATCH --{name}"
    expect_utf8(value)
    if any(character < " " or character == "\x7f" for character in value):
        raise UsageError(
            f"--{name} '{shown(value, 80)}' has a control character in it, which no #SBATCH line can carry"
        )
    if len(value.encode()) > _LONGEST_BYTES:
        raise UsageError(f"--{name} is longer than {_LONGEST_BYTES} bytes, which no #SBATCH line can carry")
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f"#SBATCH --{name}={value}" if _PLAIN.fullmatch(value) else f'#SBATCH --{name}="{quoted}"'
