"""Looks at our own processes while they run: which libraries each of them has mapped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract.image import BIN, ENV_CLEAN, OPENMPI
from azcp_runtime.contract.selftest import Subject
from azcp_runtime.selftest.allowed import is_name_service, strangers
from azcp_runtime.selftest.answer import Answer, fail, ok
from azcp_runtime.source.names import shown

_PROC: Final = Path("/proc")
_CLEAN: Final = f"{ENV_CLEAN}=1".encode()
_PLACES: Final = (f"{BIN}/".encode(), f"{OPENMPI}/bin/".encode())
_REMEDY: Final = (
    "a variable or /etc/ld.so.preload of the base reaches our processes; tell azcp-kit's developers"
)


@dataclass(frozen=True, slots=True)
class Mapped:
    """One process, seen at one moment.

    Args:
        pid: in the container.
        role: the command that it is.
        files: what it has mapped to execute.
    """

    pid: int
    role: str
    files: frozenset[str]


class Watch:
    """All that was seen so far.

    Args:
        proc: where the processes are told.
    """

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc
        self._seen: dict[tuple[str, int], set[str]] = {}
        self._expected: list[tuple[str, int, str]] = []

    def expect(self, role: str, count: int, library: str = "") -> None:
        """Without so many processes of a role, with that library in them, the look was worth nothing."""
        self._expected.append((role, count, library))

    def look(self) -> None:
        """Add what runs now."""
        for each in running(self._proc):
            self._seen.setdefault((each.role, each.pid), set()).update(each.files)

    def answer(self, rdma: str, needs: Callable[[str], tuple[str, ...]]) -> Answer:
        """Whether every process was seen, and had nothing of the base but what it may have.

        Args:
            rdma: what image.toml says of it.
            needs: what the loader finds for a library.
        """
        problems = [*self._unseen(), *self._foreign(rdma, needs)]
        if problems:
            return fail(Subject.PROCESSES, problems, _REMEDY)
        roles = ", ".join(sorted({role for role, _ in self._seen}))
        return ok(Subject.PROCESSES, f"{roles}: only our own libraries and the C library's are mapped")

    def _unseen(self) -> Iterator[str]:
        for role, count, library in self._expected:
            found = sum(
                any(library in file for file in files)
                for (seen, _), files in self._seen.items()
                if seen == role
            )
            if found < count:
                what = f" with {library}" if library else ""
                yield f"{found} of {count} processes of {role}{what} were seen in a clean environment"

    def _foreign(self, rdma: str, needs: Callable[[str], tuple[str, ...]]) -> Iterator[str]:
        told = set()
        for (role, _), files in sorted(self._seen.items()):
            # The name service's modules are plug-ins of the C library, which the base chooses.
            behind = {path for file in files if is_name_service(file) for path in needs(file)}
            for file in strangers(files, rdma):
                if os.path.realpath(file) not in map(os.path.realpath, behind) and (role, file) not in told:
                    told.add((role, file))
                    yield f"{role} has mapped {shown(os.fsencode(file))}"


def running(proc: Path) -> Iterator[Mapped]:
    """Our own processes whose environment is scrubbed; the moment before that, they have the base's."""
    for pid in sorted(int(each.name) for each in proc.iterdir() if each.name.isdigit()):
        try:
            # The environment first: what is mapped by a clean process stays so.
            if _CLEAN not in (proc / str(pid) / "environ").read_bytes().split(b"\0"):
                continue
            role = role_of((proc / str(pid) / "cmdline").read_bytes())
            files = executable_files((proc / str(pid) / "maps").read_bytes())
        except (FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended
            continue
        if role:
            yield Mapped(pid, role, files)


def role_of(cmdline: bytes) -> str:
    """The command of ours that a command line starts; empty where it is none."""
    for word in cmdline.split(b"\0"):
        if word.startswith(_PLACES):
            return os.fsdecode(os.path.basename(word))
    return ""


def executable_files(maps: bytes) -> frozenset[str]:
    """The files in /proc/PID/maps with code that can run; the C library maps data of the base too."""
    found = set()
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and b"x" in fields[1] and fields[5].startswith(b"/"):  # noqa: PLR2004 - the last is the path
            found.add(os.fsdecode(fields[5].removesuffix(b" (deleted)")))
    return frozenset(found)
