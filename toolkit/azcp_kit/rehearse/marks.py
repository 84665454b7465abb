"""How the lines begin by which phase 1 tells how it goes, whoever has caught them."""

from __future__ import annotations

import re
from typing import Final

_PHASE: Final = r"\[(?:list|diff|download|bcast|verify|filelist|cluster|total)\] "
_TOTAL: Final = r"\[total\] T="
# srun --label begins a line with the task's rank.
_TASK: Final = r"(?:\d+: )?"

SUMMARY: Final = re.compile(f"{_PHASE}|azcp-launch: ")
FINISHED: Final = re.compile(_TOTAL)
CHATTER: Final = re.compile(r"azcp-sshd: |\[progress\] ")

SCRIPT_SUMMARY: Final = re.compile(f"{_TASK}(?:{_PHASE}|azcp(?:-launch)?: )")
"""The same in the log of a batch script, which says something itself too."""
SCRIPT_FINISHED: Final = re.compile(f"{_TASK}{_TOTAL}")
SCRIPT_CHATTER: Final = re.compile(f"{_TASK}(?:{CHATTER.pattern})")
