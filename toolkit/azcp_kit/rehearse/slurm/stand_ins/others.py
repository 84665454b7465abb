"""Stand-ins for scontrol, scancel, enroot and Apptainer, as far as such a batch script needs them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from azcp_kit.rehearse.slurm.stand_ins.wire import FOLDER, read_job

_VALUED: Final = frozenset(
    {"--rc", "--conf", "--env", "--mount", "--root", "-e", "-m", "-c", "-r", "--bind", "-B", "--pwd",
     "--home", "-H", "--env-file", "--overlay", "-o", "--workdir", "-W", "--network", "--security"}
)  # fmt: skip


def scontrol(argv: Sequence[str]) -> int:
    """What it tells of the job, and of host lists."""
    folder = Path(os.environ[FOLDER])
    job = read_job(folder)
    words = [word for word in argv if not word.startswith("-")]
    match words[:2]:
        case ["show", "job" | "jobs"]:
            print(
                f"JobId={job.number} JobName={job.name} UserId=root(0) JobState=RUNNING Reason=None "
                f"Requeue=0 Restarts=0 BatchFlag=1 NumNodes={len(job.nodes)} "
                f"NodeList={','.join(job.nodes)} BatchHost={job.nodes[0]} WorkDir={folder}"
            )
        case ["show", "hostnames" | "hostname"]:
            print("\n".join((words[2] if words[2:] else ",".join(job.nodes)).split(",")))
        case ["show", "hostlist" | "hostlistsorted"]:
            print(words[2] if words[2:] else ",".join(job.nodes))
        case ["ping", *_]:
            print("Slurmctld(primary) at rehearsal is UP")
        case _:
            print(f"scontrol: error: {' '.join(words[:1])} is not rehearsed", file=sys.stderr)
            return 1
    return 0


def scancel(argv: Sequence[str]) -> int:
    """A signal for all steps that run; SIGTERM where none is named."""
    named = next((word.partition("=")[2] for word in argv if word.startswith("--signal=")), "TERM")
    number = getattr(signal, f"SIG{named.removeprefix('SIG')}", signal.SIGTERM)
    for file in (Path(os.environ[FOLDER]) / "steps").glob("*/pid"):
        if not (file.parent / "end.json").exists():
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text(encoding="ascii")), number)
    return 0


def container(argv: Sequence[str]) -> int:
    """What enroot start, apptainer exec and the like begin: the words run where they are, in an image."""
    words = entered(argv)
    if not words:
        print(f"rehearsal: {' '.join(argv[:1])} is left out: the image is here already", file=sys.stderr)
        return 0
    try:
        os.execvp(words[0], words)  # noqa: S606 - an argument list, no shell
    except OSError as error:
        print(f"rehearsal: {words[0]}: {error.strerror}", file=sys.stderr)
        return 127


def entered(argv: Sequence[str]) -> list[str]:
    """The words behind the options and the image; none for what starts nothing."""
    if argv[:1] not in (["start"], ["exec"], ["run"]):
        return []
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        at += 2 if argv[at] in _VALUED else 1
    return list(argv[at + 1 :])


PROGRAMS: Final[Mapping[str, Callable[[Sequence[str]], int]]] = MappingProxyType(
    {
        "scontrol": scontrol,
        "scancel": scancel,
        "enroot": container,
        "apptainer": container,
        "singularity": container,
    }
)
