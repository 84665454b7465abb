"""A machine of the lab: processes in namespaces of their own, which end with the pipe that holds them."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

UP_S: Final = 10.0
GONE_S: Final = 10.0
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAMESPACES: Final = ("--net", "--uts", "--ipc", "--mount", "--pid")
_MEMORY: Final = "/dev/shm"  # noqa: S108 - each machine has its own
_UP: Final = b"up\n"


@dataclass(frozen=True, slots=True)
class Disk:
    """What a machine sees at some paths.

    Args:
        own: for each path a folder of the host that is there instead.
        shared: folders and files of the host that it sees too, by the path they have in it.
        shared_first: of `shared`, the one that holds the folders of `own`.
    """

    own: Mapping[str, Path]
    shared: Mapping[str, Path]
    shared_first: Path

    def steps(self) -> list[list[str]]:
        """The commands that mount all of it, in a mount namespace."""
        inner = [
            ["mount", "-n", "--rbind", str(source), str(self._place(p))] for p, source in self.shared.items()
        ]
        # What holds the folders comes last: once it is covered, a folder has lost what was mounted below it.
        covers = sorted(self.own, key=self.shared_first.is_relative_to)
        return [*inner, *(["mount", "-n", "--rbind", str(self.own[path]), path] for path in covers)]

    def make(self) -> None:
        """Make the folders, and below them the mount points."""
        for path, source in self.shared.items():
            if source.is_dir():
                self._place(path).mkdir(parents=True, exist_ok=True)
        for path, folder in self.own.items():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(Path(path).stat().st_mode & 0o7777)

    def _place(self, path: str) -> Path:
        for root, folder in self.own.items():
            if Path(path).is_relative_to(root):
                return folder / Path(path).relative_to(root)
        return Path(path)


@dataclass(frozen=True, slots=True)
class Machine:
    """One that runs. It ends with `stop`, or with this process, however that ends: its init reads from us."""

    name: str
    process: subprocess.Popen[bytes]
    init: int

    def boot(self) -> None:
        """Let its services start, now that it is connected."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"boot\n")
        self.process.stdin.flush()

    def enter(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` in it."""
        return ["nsenter", f"--target={self.init}", *NAMESPACES, "--", *argv]

    def kill(self) -> None:
        """SIGKILL to its init, which takes every process in it along."""
        if self.process.poll() is None:
            os.kill(self.init, signal.SIGKILL)
        self.process.wait(GONE_S)
        self._close()

    def stop(self) -> None:
        """End it, and whatever runs in it."""
        self._close()
        try:
            self.process.wait(GONE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def _close(self) -> None:
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()


def start_machine(name: str, disk: Disk, services: Sequence[Sequence[str]], log: Path) -> Machine:
    """Start one that has no network yet.

    Args:
        name: its host name.
        disk: what it sees.
        services: what `boot` starts, in this order; all but the last return once they are up.
        log: what is said in it.

    Raises:
        RuntimeError: it did not come up.
    """
    disk.make()
    argv = ["unshare", *NAMESPACES, "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [*argv, _init(name, disk.steps(), services)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stream,
            cwd="/",
            env={"PATH": PATH, "LANG": "C.UTF-8"},
            start_new_session=True,
        )
    try:
        _wait_up(process, log)
        init = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii"))
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return Machine(name, process, init)


def _init(name: str, mounts: Sequence[Sequence[str]], services: Sequence[Sequence[str]]) -> str:
    """The script of its first process."""
    memory = ["mount", "-n", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", _MEMORY]
    *daemons, last = (shlex.join(service) for service in services)
    before = [shlex.join(step) for step in (["hostname", name], *mounts, memory)]
    # cat ends when we do; as long as it runs the shell reaps who has lost his parent.
    return "\n".join(["set -e", *before, "echo up", "exec >&2", "read -r boot", *daemons, f"{last} &", "cat"])


def _wait_up(process: subprocess.Popen[bytes], log: Path) -> None:
    assert process.stdout is not None
    with process.stdout as stdout:
        ready, _, _ = select.select([stdout], [], [], UP_S)
        if not ready or stdout.readline() != _UP:
            raise RuntimeError(f"the machine did not come up: {log.read_text(encoding='utf-8')}")
