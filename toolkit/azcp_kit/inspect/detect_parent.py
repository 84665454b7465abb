"""The one folder of a base that an injection passes through, /opt: a COPY may change its owner or mode."""

from __future__ import annotations

import stat
import tarfile
from typing import Final

from azcp_runtime.contract.image import PREFIX

PARENT: Final = PREFIX.rpartition("/")[0]
ABSENT: Final = "not there"
AS_MADE: Final = "a folder of 0:0 with mode 755"
"""What every builder makes of it where it is absent, and most distributions too."""


def describe_parent(header: tarfile.TarInfo | None) -> str:
    """What it is, for people and to compare."""
    if header is None:
        return ABSENT
    kind = "a folder" if header.isdir() else "a link" if header.issym() else "no folder"
    return f"{kind} of {header.uid}:{header.gid} with mode {stat.S_IMODE(header.mode):o}"
