"""Which nodes a job has, as the user names them, and what a name may look like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from azcp_runtime.contract import PreflightError, UsageError
from azcp_runtime.contract.image import LONGEST_HOST_NAME
from azcp_runtime.launch.hostlist import expand

_NAME: Final = re.compile(r"(?![-.])[A-Za-z0-9._-]{1,253}", re.ASCII)
_IPV6: Final = re.compile(r"[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9_.-]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Found:
    """The nodes of a job, and how they were found.

    Args:
        way: how, for a line of talk.
        hosts: names or addresses in the order of their ranks.
        own: which of them this node is, where every node runs the same command; None where one node
            starts the others.
    """

    way: str
    hosts: Sequence[str]
    own: int | None = None


class Discovery(Protocol):
    """A way to find the nodes of a job."""

    @property
    def sought(self) -> str:
        """What it looks at, for the one who wonders why nothing was found."""

    def find(self) -> Found | None:
        """The nodes; None where this way does not apply."""


@dataclass(frozen=True, slots=True)
class Listed:
    """--hosts a,b[0-3],c."""

    text: str | None

    @property
    def sought(self) -> str:
        """The option."""
        return "--hosts"

    def find(self) -> Found | None:
        """The names between the commas, ranges written out."""
        return None if self.text is None else Found("--hosts", checked_hosts(expand(self.text), "--hosts"))


@dataclass(frozen=True, slots=True)
class InFile:
    """--hostfile FILE: names or ranges, one per line; how many slots a host has does not matter here."""

    path: Path | None

    @property
    def sought(self) -> str:
        """The option."""
        return "--hostfile"

    def find(self) -> Found | None:
        """The first word of each line.

        Raises:
            UsageError: the file cannot be read, or names no host.
        """
        if self.path is None:
            return None
        return Found(f"--hostfile {self.path}", read_hostfile(self.path))


def read_hostfile(path: Path) -> Sequence[str]:
    """The hosts of a file as mpirun and its operators write it.

    Raises:
        UsageError: the file cannot be read, or names no host.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the hostfile {path} cannot be read: {error}") from error
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return checked_hosts([host for words in lines if words for host in expand(words[0])], str(path))


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
    if len(name) > LONGEST_HOST_NAME:
        raise PreflightError(
            f"this node's host name has {len(name)} characters: {name}",
            cause=f"Open MPI aborts where it has more than {LONGEST_HOST_NAME}",
            remedy=f"make the job's name shorter by {len(name) - LONGEST_HOST_NAME}",
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


def checked_hosts(entries: Sequence[str], source: str) -> Sequence[str]:
    """The entries as hosts, each once.

    Args:
        entries: names, addresses, or either with a number of slots.
        source: where they are from, for the message.

    Raises:
        UsageError: one is no host or is there twice, or there is none.
    """
    hosts = [check_host(_without_slots(entry.strip())) for entry in entries if entry.strip()]
    if not hosts:
        raise UsageError(f"{source} names no host")
    twice = sorted(host for host, times in Counter(hosts).items() if times > 1)
    if twice:
        raise UsageError(f"{source} names {', '.join(twice)} twice", remedy="one rank runs on each node")
    return hosts


def _without_slots(entry: str) -> str:
    """HOST:SLOTS as MPICH's hostfiles have it; an IPv6 address has more colons, or brackets."""
    name, colon, slots = entry.rpartition(":")
    is_count = colon and slots.isdecimal() and (":" not in name or name.endswith("]"))
    return name if is_count else entry
