"""Submits the copy of a batch script, and sees what Slurm says of the job."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import ENV_SAS, PreflightError

from azcp_kit.rehearse.account import CREDENTIAL_NAMES
from azcp_kit.rehearse.slurm.script import BatchScript
from azcp_kit.rehearse.slurm.site import run_slurm
from azcp_kit.shown import shown

_FIELD: Final = re.compile(r"(?:^|\s)(\w+)=(\S*)")
_ENDED: Final = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}
)


@dataclass(frozen=True, slots=True)
class JobState:
    """A job as Slurm sees it.

    Args:
        state: such as RUNNING.
        reason: why it does not run, where it does not.
        nodes: its host list; empty before it has any.
        code: the batch script's, or 128 and the signal's number.
        restarts: how often it was queued again.
    """

    state: str
    reason: str
    nodes: str
    code: int
    restarts: int

    @property
    def is_over(self) -> bool:
        """Whether nothing of it will run any more."""
        return self.state in _ENDED


def submit(script: BatchScript, file: Path, log: Path, sas: str) -> int:
    """Submit a script; the job's number.

    Args:
        script: what it was made from.
        file: it.
        log: where both of its streams go, instead of over a log of the user's.
        sas: for its environment; empty where it reads a file.

    Raises:
        PreflightError: sbatch refuses it.
    """
    env = {name: value for name, value in os.environ.items() if name not in CREDENTIAL_NAMES}
    if sas:
        env[ENV_SAS] = sas
    streams = (f"--output={log}", f"--error={log}", "--open-mode=append")
    ended = run_slurm(
        ["sbatch", "--parsable", *streams, f"--export={exports(script, has_sas=bool(sas))}", str(file)], env
    )
    number = ended.stdout.strip().partition(";")[0]
    if ended.returncode or not number.isdecimal():
        raise PreflightError(
            "sbatch refuses the script",
            cause=shown(" / ".join(ended.stderr.split("\n")).strip(" /"), 600) or f"code {ended.returncode}",
            remedy="it would refuse the original too",
        )
    return int(number)


def exports(script: BatchScript, *, has_sas: bool) -> str:
    """What of the environment the job gets: what its own directive says, and the way into the emulator."""
    directive = script.batch.directive("--export")
    own = directive.value if directive else "ALL"
    if not has_sas:
        return own
    return ENV_SAS if own in ("NONE", "NIL") else f"{own},{ENV_SAS}"


def job_state(number: int) -> JobState | None:
    """The job now; None where Slurm does not tell, as a controller that is busy."""
    ended = run_slurm(["scontrol", "show", "job", "--oneliner", str(number)])
    return parse_state(ended.stdout) if ended.returncode == 0 else None


def parse_state(text: str) -> JobState | None:
    """Read the line of `scontrol show job --oneliner`."""
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(text):
        fields.setdefault(name, value)
    if "JobState" not in fields:
        return None
    code, _, number = fields.get("ExitCode", "0:0").partition(":")
    nodes = fields.get("NodeList", "")
    return JobState(
        state=fields["JobState"],
        reason=fields.get("Reason", "None"),
        nodes="" if nodes in ("(null)", "None") else nodes,
        code=int(code) or (128 + int(number) if number.isdecimal() and int(number) else 0),
        restarts=int(fields.get("Restarts", "0")),
    )


def cancel(number: int) -> None:
    """End a job, in whatever state it is."""
    run_slurm(["scancel", str(number)])
