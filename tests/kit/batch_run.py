"""Runs a generated batch script with stand-ins for Slurm's commands, which note what they were given."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

RECORD: Final = "JobId=7 JobName=llama UserId=root(0) Restarts=0 BatchFlag=1"
# Each call has a file of its own: the words, each ended by a NUL.
_NOTE: Final = 'printf "%s\\0" "$@" >"$(mktemp "$CALLS/$(ls "$CALLS" | wc -l).XXXX")"\n'
_TOOLS: Final = {
    "scontrol": 'if [[ $2 == hostnames ]]; then tr , "\\n" <<<"$3"; exit; fi\n'
    'case $1 in show) echo "$RECORD" ;; *) echo "$@" >>"$SAID" ;; esac\n',
    "scancel": 'echo "$@" >>"$SAID"\n',
    # Codes of the steps, in their order.
    # With AT_LIMIT the time limit is near while the first one runs.
    "srun": 'if [[ $1 == --mpi=list ]]; then echo "none, pmi2, pmix, pmix_v4"; exit; fi\n'
    + _NOTE
    # A task that was started tells which PMIx there are.
    + 'if [[ " $* " == *" --stage "* && -z ${UNSTARTED:-} ]]; then echo "[pmix] 4 there; 3 here" >&2; fi\n'
    + 'if [[ -n ${AT_LIMIT:-} && $(ls "$CALLS" | wc -l) == 1 ]]; then kill -USR1 "$(<"$PID")"; fi\n'
    + 'set -- $CODES; shift "$(($(ls "$CALLS" | wc -l) - 1))" 2>/dev/null; exit "${1:-0}"\n',
}


@dataclass(frozen=True)
class Ran:
    """What came of it.

    Args:
        code: the exit code of the script.
        stderr: what it has said.
        steps: the words of each srun.
        said: the words of each other command, a line each.
    """

    code: int
    stderr: str
    steps: Sequence[Sequence[str]]
    said: str


def run_batch(
    script: str, folder: Path, *, nodes: int = 4, codes: str = "", record: str = RECORD, **env: str
) -> Ran:
    """Run the script in an empty folder."""
    tools, calls, said = folder / "tools", folder / "calls", folder / "said"
    tools.mkdir()
    calls.mkdir()
    said.touch()
    for name, text in _TOOLS.items():
        (tools / name).write_text(f"#!/bin/bash\n{text}", encoding="utf-8")
        (tools / name).chmod(0o755)
    file = folder / "script"
    file.write_text(script, encoding="utf-8", newline="")
    environment: Mapping[str, str] = {
        "PATH": f"{tools}:/usr/bin:/bin",
        "CALLS": str(calls),
        "SAID": str(said),
        "RECORD": record,
        "PID": str(folder / "pid"),
        "CODES": codes,
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NUM_NODES": str(nodes),
        "SLURM_JOB_NODELIST": ",".join(f"n{number}" for number in range(nodes)),
        **env,
    }
    argv = ["bash", "-c", 'echo $$ >"$PID"; exec bash "$0"', str(file)]
    done = subprocess.run(argv, env=environment, cwd=folder, capture_output=True, timeout=60, check=False)
    ordered = sorted(calls.iterdir(), key=lambda path: int(path.name.partition(".")[0]))
    steps = [path.read_bytes().decode("utf-8").split("\0")[:-1] for path in ordered]
    return Ran(done.returncode, done.stderr.decode(), steps, said.read_text(encoding="utf-8"))
