"""A machine to spoil: this one's files under an overlay, with devices, /sys and mounts of its own."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final, Self

STANDINS: Final = "/opt/standins"
"""Its bin/ is first on PATH."""

RUN_S: Final = 60.0
_PATH: Final = f"{STANDINS}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DEVICES: Final = {"null": (1, 3), "zero": (1, 5), "random": (1, 8), "urandom": (1, 9)}

# All is gone with the process, which ends when its input does. The upper layer cannot lie in the lower.
_SETUP: Final = """
set -eu
place=$1
mount -t tmpfs none "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" overlay "$place/root"
mount -t proc proc "$place/root/proc"
mount -t tmpfs -o mode=755 none "$place/root/dev"
mount -t tmpfs -o mode=755 none "$place/root/sys"
mount -t tmpfs -o mode=755 none "$place/root/mnt"
shift
while [ $# -gt 0 ]; do
    mkdir -p "$place/root$2"
    mount --bind "$1" "$place/root$2"
    shift 2
done
echo ready
exec cat
"""


class Throwaway:
    """One machine, for the length of a with block; needs root.

    Args:
        place: an empty folder.
        shared: folders of this machine, by the paths at which that one has them.
    """

    def __init__(self, place: Path, shared: Mapping[str, Path] | None = None) -> None:
        self._place = place
        self._shared = shared or {}
        self._holder: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._place.mkdir()
        binds = [word for path, folder in self._shared.items() for word in (str(folder), path)]
        holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", _SETUP, "sh", str(self._place), *binds],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._holder = holder
        if _pipe(holder.stdout).readline() != "ready\n":
            raise RuntimeError(f"no overlay over this machine's files: {holder.wait()}")
        for name, (major, minor) in _DEVICES.items():
            self._node(name, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        self.path("/dev/fd").symlink_to("/proc/self/fd")
        self.path(f"{STANDINS}/bin").mkdir(parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._holder is not None:
            self._holder.communicate()

    def path(self, path: str) -> Path:
        """Where this machine sees a path of that one."""
        assert self._holder is not None
        return Path(f"/proc/{self._holder.pid}/root{self._place}/root{path}")

    def run(
        self, *argv: str, env: Mapping[str, str] | None = None, timeout_s: float = RUN_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; its standard error is among its output."""
        with self.start(*argv, env=env) as started:
            try:
                output, _ = started.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                started.kill()
                raise
        return subprocess.CompletedProcess(argv, started.returncode, output)

    def start(self, *argv: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """The same, without waiting for it."""
        assert self._holder is not None
        command = [
            "nsenter",
            f"--mount=/proc/{self._holder.pid}/ns/mnt",
            "chroot",
            f"{self._place}/root",
            *argv,
        ]
        return subprocess.Popen(
            command,
            env={"PATH": _PATH, "LANG": "C.UTF-8", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def said(self, *argv: str) -> str:
        """What a command that must succeed prints."""
        ended = self.run(*argv)
        assert ended.returncode == 0, f"{argv}: {ended.returncode} {ended.stdout}"
        return ended.stdout

    def write(self, path: str, text: str) -> None:
        """A file with its folders."""
        file = self.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def stand_in(self, name: str, lines: Sequence[str], interpreter: str = "/bin/sh") -> None:
        """A program that is found before any other of its name."""
        self.write(f"{STANDINS}/bin/{name}", "\n".join((f"#!{interpreter}", *lines, "")))
        self.path(f"{STANDINS}/bin/{name}").chmod(0o755)

    def no_stand_in(self, name: str) -> None:
        """The real program again."""
        self.path(f"{STANDINS}/bin/{name}").unlink()

    def block_device(self, name: str, device: str) -> None:
        """A block device of this machine, by a name of its own there."""
        self._node(name, stat.S_IFBLK | 0o660, os.stat(device).st_rdev)

    def _node(self, name: str, mode: int, number: int) -> None:
        node = self.path(f"/dev/{name}")
        os.mknod(node, mode, number)
        node.chmod(stat.S_IMODE(mode))


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
