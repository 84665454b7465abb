"""What a rehearsal is asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from azcp_runtime.contract import UsageError

from azcp_kit.shown import shown

DEFAULT_SIZE_BYTES: Final = 48 << 20
DEFAULT_TIMEOUT_S: Final = 600.0
_LATE: Final = re.compile(r"([-a-z0-9.]+)=(\d+(?:\.\d+)?)s?", re.ASCII)
_KILL: Final = re.compile(r"([-a-z0-9.]+)=(phase1|start)(?:/(\d+(?:\.\d+)?)s?)?", re.ASCII)


class Until(Enum):
    """Where a rehearsal ends."""

    END = "end"
    DISTRIBUTED = "distributed"


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL for what runs of a pod.

    Args:
        pod: its title.
        since: `start` of the pod, or `phase1` of its workload.
        after_s: so long after that.
    """

    pod: str
    since: str
    after_s: float


@dataclass(frozen=True, slots=True)
class RehearseRequest:
    """One rehearsal.

    Args:
        manifest: its text.
        nodes: how many; None for the manifest's own number, but not more than a few.
        images: other images by the names that the manifest has.
        pulls: absent images are pulled.
        timeout_s: of all that the pods do.
        size_bytes: of the data set that is distributed.
        until: where it ends.
        late: seconds by pod, for which it is made later.
        kills: pods that are killed.
    """

    manifest: str
    nodes: int | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    pulls: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    size_bytes: int = DEFAULT_SIZE_BYTES
    until: Until = Until.END
    late: Mapping[str, float] = field(default_factory=dict)
    kills: tuple[Kill, ...] = ()


def parse_late(texts: Sequence[str]) -> dict[str, float]:
    """--late POD=SECONDS, several times.

    Raises:
        UsageError: one is something else.
    """
    found = {}
    for text in texts:
        match = _LATE.fullmatch(text)
        if match is None:
            raise UsageError(f"--late {shown(text)} is not POD=SECONDS")
        found[match[1]] = float(match[2])
    return found


def parse_kills(texts: Sequence[str]) -> tuple[Kill, ...]:
    """--kill POD=phase1/SECONDS or POD=start/SECONDS, several times.

    Raises:
        UsageError: one is something else.
    """
    found = []
    for text in texts:
        match = _KILL.fullmatch(text)
        if match is None:
            raise UsageError(f"--kill {shown(text)} is neither POD=phase1/SECONDS nor POD=start/SECONDS")
        found.append(Kill(match[1], match[2], float(match[3] or 0)))
    return tuple(found)


def parse_images(texts: Sequence[str]) -> dict[str, str]:
    """--image NAME=OTHER, several times; a name alone stands for every image.

    Raises:
        UsageError: one has nothing after the equals sign.
    """
    found = {}
    for text in texts:
        name, sign, other = text.rpartition("=")
        if not other or (sign and not name):
            raise UsageError(f"--image {shown(text)} is neither NAME=OTHER nor OTHER")
        found[name] = other
    return found
