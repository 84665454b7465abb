"""What is wrong with the entries of an added layer: where they lie, whose they are, what they hold."""

from __future__ import annotations

import re
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from azcp_runtime.contract.image import PREFIX

from azcp_kit.shown import shown
from azcp_kit.verify.secret_text import is_secret_file, secrets_in

_OWN: Final = PREFIX.lstrip("/")
_PARENT: Final = _OWN.rpartition("/")[0]
_WHITEOUT: Final = ".wh."
_LARGEST_REST_BYTES: Final = 64 * 2**10
"""Of a log or a temporary file: a step leaves some lines, or the script that it ran."""

_CACHES: Final = re.compile(
    r"var/lib/apt/lists/.+|var/cache/apt/.*(?:\.deb|\.bin)|var/cache/(?:dnf|yum|zypp|apk|tdnf)/.+|"
    r"(?:.*/)?\.cache/.+|(?:.*/)?pip/(?:http|wheels|selfcheck)/.+|root/\.(?:npm|conda)/.+"
)
_SMALL_ONLY: Final = re.compile(r"var/log/.+|(?:var/)?tmp/.+")


class Rule(StrEnum):
    """What an entry can break."""

    PLACE = "added files"
    OWNER = "owners and modes"
    CACHE = "caches and logs"
    SECRET = "secrets in files"  # noqa: S105 - the name of a check


@dataclass(frozen=True, slots=True)
class Breach:
    """One entry that breaks a rule; the text is fit for a terminal."""

    rule: Rule
    text: str


def breaches(member: tarfile.TarInfo, content: bytes) -> Iterator[Breach]:
    """The rules that an entry of a layer breaks.

    Args:
        member: as the layer has it, without a leading slash.
        content: of a file, as far as it is read.
    """
    path = member.name.removeprefix("./").strip("/")
    if path in ("", "."):
        return
    told = shown(f"/{path}")
    if not _is_own(path):
        yield from _outside(member, path, told)
    if _is_own(path):
        for problem in _metadata(member):
            yield Breach(Rule.OWNER, f"{told} {problem}")
    is_too_large = member.size > _LARGEST_REST_BYTES and _SMALL_ONLY.fullmatch(path)
    if is_too_large or (_CACHES.fullmatch(path) and not member.isdir() and not _is_whiteout(path)):
        yield Breach(Rule.CACHE, f"{told} of {member.size} bytes is left over")
    if is_secret_file(path):
        yield Breach(Rule.SECRET, f"{told} is there")
    for what in dict.fromkeys(secrets_in(path, content)):
        yield Breach(Rule.SECRET, f"{told} holds {what}")


def _is_own(path: str) -> bool:
    return path == _OWN or path.startswith(f"{_OWN}/")


def _is_whiteout(path: str) -> bool:
    return path.rpartition("/")[2].startswith(_WHITEOUT)


def _outside(member: tarfile.TarInfo, path: str, told: str) -> Iterator[Breach]:
    if path == _PARENT and member.isdir():
        return
    yield Breach(Rule.PLACE, f"{told} is deleted" if _is_whiteout(path) else told)


def _metadata(member: tarfile.TarInfo) -> Iterator[str]:
    if member.uid or member.gid:
        yield f"belongs to {member.uid}:{member.gid}"
    if member.issym():  # its mode has no meaning
        return
    if member.mode & (stat.S_ISUID | stat.S_ISGID):
        yield "is setuid or setgid"
    if member.mode & stat.S_IWOTH:
        yield "can be written by all"
    if not (member.isreg() or member.isdir() or member.islnk()):
        yield "is no file, folder or link"
