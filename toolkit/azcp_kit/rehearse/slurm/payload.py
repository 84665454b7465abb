"""The folder that all containers of a rehearsed batch script share: the script, the stand-ins, the job."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from azcp_runtime.contract.image import PYTHON

from azcp_kit.rehearse.slurm.stand_ins.others import PROGRAMS
from azcp_kit.rehearse.slurm.stand_ins.wire import FOLDER, Job

SHARED: Final = "/azcp-rehearsal"
BIN: Final = f"{SHARED}/bin"
SUBMIT: Final = f"{SHARED}/submit"
STEPS: Final = f"{SHARED}/steps"
SCRIPT: Final = f"{SHARED}/script"
NODE: Final = f"{BIN}/node"
_PACKAGES: Final = ("azcp_kit", "azcp_kit/rehearse", "azcp_kit/rehearse/slurm")
_EXECUTABLE: Final = 0o755
_PLAIN: Final = 0o644

Files = Mapping[str, tuple[int, bytes]]


def shared_files(job: Job, script: str) -> dict[str, tuple[int, bytes]]:
    """The mode and the content of each file by its path in the folder."""
    found = {"script": (_EXECUTABLE, script.encode()), "job.json": (_PLAIN, json.dumps(asdict(job)).encode())}
    found |= {f"lib/{package}/__init__.py": (_PLAIN, b"") for package in _PACKAGES}
    for file in sorted((Path(__file__).parent / "stand_ins").glob("*.py")):
        found[f"lib/azcp_kit/rehearse/slurm/stand_ins/{file.name}"] = (_PLAIN, file.read_bytes())
    found |= {f"bin/{name}": (_EXECUTABLE, text.encode()) for name, text in programs(PYTHON, SHARED)}
    return found


def programs(python: str, shared: str) -> Iterator[tuple[str, str]]:
    """Those that the script finds on its PATH, and the node's, by their names.

    Args:
        python: the interpreter that they run by.
        shared: the folder that all nodes share.
    """
    for name in ("node", "srun", *PROGRAMS):
        module = "others" if name in PROGRAMS else name
        call = f"PROGRAMS[{name!r}]" if name in PROGRAMS else "main"
        lines = (
            f"#!{python} -I",
            "import os, sys",
            f"sys.path.insert(0, {shared + '/lib'!r})",
            # Said in the program, for --export may hand on no variable that nobody has named.
            f"os.environ[{FOLDER!r}] = {shared!r}",
            f"from azcp_kit.rehearse.slurm.stand_ins import {module}",
            f"sys.exit({module}.{call}(sys.argv[1:]))",
        )
        yield name, "".join(f"{line}\n" for line in lines)


def files_in(root: str, files: Files, folders: tuple[str, ...] = ()) -> bytes:
    """A tar of files below a folder, and of folders that anybody may write to."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder in folders:
            member = tarfile.TarInfo(f"{root}{folder}")
            member.type, member.mode = tarfile.DIRTYPE, 0o777
            tar.addfile(member)
        for path, (mode, content) in files.items():
            member = tarfile.TarInfo(f"{root}{path}")
            member.mode, member.size = mode, len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()
