"""Which nodes a job has: from the command line, from a hostfile, or this one alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from azcp_runtime.contract import PreflightError, UsageError

_NAME: Final = re.compile(r"(?![-.])[A-Za-z0-9._-]{1,253}", re.ASCII)
_IPV6: Final = re.compile(r"[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9_.-]+)?", re.ASCII)
_LONGEST_OWN_NAME: Final = 56
"""Open MPI 4.1 aborts in a node whose own host name is longer: it copies it into a buffer without a look."""


class Discovery(Protocol):
    """A way to find the nodes of a job."""

    def find(self) -> Sequence[str] | None:
        """Names or addresses in the order of their ranks; None where this way does not apply."""


@dataclass(frozen=True, slots=True)
class Listed:
    """--hosts a,b,c."""

    text: str | None

    def find(self) -> Sequence[str] | None:
        """The names between the commas."""
        return None if self.text is None else _checked(self.text.split(","), "--hosts")


@dataclass(frozen=True, slots=True)
class InFile:
    """--hostfile FILE: a name per line; how many slots it has does not matter here."""

    path: Path | None

    def find(self) -> Sequence[str] | None:
        """The first word of each line.

        Raises:
            UsageError: the file cannot be read, or names no host.
        """
        if self.path is None:
            return None
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--hostfile {self.path} cannot be read: {error}") from error
        lines = (line.partition("#")[0].split() for line in text.splitlines())
        return _checked([words[0] for words in lines if words], str(self.path))


def find_hosts(ways: Sequence[Discovery]) -> Sequence[str]:
    """What the first way says that applies; no host where none does: this node alone."""
    for way in ways:
        hosts = way.find()
        if hosts is not None:
            return hosts
    return ()


def check_host(text: str) -> str:
    """A host name or address without its brackets.

    Raises:
        UsageError: it is neither; it may be an option or a shell's text in disguise.
    """
    bare = text.removeprefix("[").removesuffix("]") if text.startswith("[") else text
    if not (_NAME.fullmatch(bare) or _IPV6.fullmatch(bare)):
        raise UsageError(f"{text!r} is no host name", remedy="letters, digits, dots and dashes make one")
    return bare


def check_own_name(name: str) -> None:
    """Refuse a host name that would end Open MPI's daemons without a word.

    Raises:
        PreflightError: it is too long.
    """
    if len(name) > _LONGEST_OWN_NAME:
        raise PreflightError(
            f"this node's host name has {len(name)} characters: {name}",
            cause=f"Open MPI aborts where it has more than {_LONGEST_OWN_NAME}",
            remedy=f"make the job's name shorter by {len(name) - _LONGEST_OWN_NAME}",
        )


def check_distinct(addresses: Mapping[str, str]) -> None:
    """Refuse two names of one node: both would write the same disk.

    Args:
        addresses: by name.

    Raises:
        PreflightError: which names, and their address.
    """
    names: dict[str, list[str]] = {}
    for name, address in addresses.items():
        names.setdefault(address, []).append(name)
    clashes = [f"{' and '.join(same)} are {address}" for address, same in names.items() if len(same) > 1]
    if clashes:
        raise PreflightError(f"two names of one node: {'; '.join(clashes)}", remedy="name each node once")


def _checked(entries: Sequence[str], source: str) -> Sequence[str]:
    hosts = [check_host(_without_slots(entry.strip())) for entry in entries if entry.strip()]
    if not hosts:
        raise UsageError(f"{source} names no host")
    twice = sorted({host for host in hosts if hosts.count(host) > 1})
    if twice:
        raise UsageError(f"{source} names {', '.join(twice)} twice", remedy="one rank runs on each node")
    return hosts


def _without_slots(entry: str) -> str:
    """HOST:SLOTS as MPICH's hostfiles have it; an IPv6 address has more colons, or brackets."""
    name, colon, slots = entry.rpartition(":")
    is_count = colon and slots.isdecimal() and (":" not in name or name.endswith("]"))
    return name if is_count else entry
