"""The one folder of the base that an injection passes through: a COPY may change its owner or mode."""

from __future__ import annotations

import stat
import tarfile
from typing import Final

from azcp_runtime.contract.image import PREFIX

from azcp_kit.engine import Engine
from azcp_kit.inspect.stored import StoredImage
from azcp_kit.verify.verification import Check, judged

PARENT: Final = PREFIX.rpartition("/")[0]
_ABSENT: Final = "not there"
_AS_MADE: Final = "a folder of 0:0 with mode 755"


def check_parent(engine: Engine, image: StoredImage, base: StoredImage) -> Check:
    """Whether it is as the base has it, or as any builder makes it where the base has none."""
    now, before = (_look(engine, each) for each in (image, base))
    wanted = _AS_MADE if before == _ABSENT else before
    problems = () if now == wanted else (f"{PARENT} is {now}, was {before}",)
    return judged(f"base {PARENT}", problems, now, "copy to /opt/azcp/ and not to /, so that /opt stays")


def describe(header: tarfile.TarInfo | None) -> str:
    """What a path is, for people and to compare."""
    if header is None:
        return _ABSENT
    kind = "a folder" if header.isdir() else "a link" if header.issym() else "no folder"
    return f"{kind} of {header.uid}:{header.gid} with mode {stat.S_IMODE(header.mode):o}"


def _look(engine: Engine, image: StoredImage) -> str:
    with engine.probe(image) as files:
        return describe(files.header(PARENT))
