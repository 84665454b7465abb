"""Exit codes and signals of mpirun mean what scripts expect of azcp-mpirun."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.waiting import wait_until

DEADLINE_S = 20.0
START = """
import sys
from azcp_runtime.launch import mpirun
mpirun.MPIRUN = sys.argv[1]
sys.exit(mpirun.main(sys.argv[2:]))
"""


@contextmanager
def started(folder: Path, script: str) -> Iterator[subprocess.Popen[str]]:
    """azcp-mpirun with a script in mpirun's place."""
    program = folder / "mpirun"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    argv = [sys.executable, "-c", START, str(program), "-np", "1"]
    env = os.environ | {"AZCP_STATE_DIR": str(folder / "state"), "OMPI_MCA_pml": "of the base"}
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def ended(folder: Path, script: str) -> tuple[int, str]:
    with started(folder, script) as process:
        out, _ = process.communicate(timeout=DEADLINE_S)
        return process.returncode, out


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 5", 5), ("kill -9 $$", 137)])
def test_mpiruns_exit_code_is_ours(tmp_path: Path, script: str, code: int) -> None:
    assert ended(tmp_path, script)[0] == code


def test_mpirun_gets_its_arguments_and_a_clean_environment(tmp_path: Path) -> None:
    code, out = ended(tmp_path, 'echo "$@" "$OPAL_PREFIX" "$OMPI_MCA_pml"')
    assert (code, out) == (0, "--noprefix -np 1 /opt/azcp/openmpi \n")


@pytest.mark.parametrize(("script", "code"), [("exit 143", 75), ("exit 0", 0)])
def test_a_stop_is_passed_on_and_a_failure_after_it_is_resumable(
    tmp_path: Path, script: str, code: int
) -> None:
    ready = tmp_path / "ready"
    with started(tmp_path, f"trap '{script}' TERM; touch {ready}; while :; do sleep 0.05; done") as process:
        wait_until(ready.exists, DEADLINE_S, "mpirun runs")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == code


def test_mpirun_is_told_to_end_when_its_launcher_is_killed(tmp_path: Path) -> None:
    ready, told = tmp_path / "ready", tmp_path / "told"
    script = f"trap 'touch {told}; exit 1' TERM; touch {ready}; while :; do sleep 0.05; done"
    with started(tmp_path, script) as process:
        wait_until(ready.exists, DEADLINE_S, "mpirun runs")
        process.kill()
        wait_until(told.exists, DEADLINE_S, "mpirun is told")


def test_a_host_name_that_ends_open_mpi_is_refused_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from azcp_runtime.contract import PreflightError
    from azcp_runtime.launch import mpirun

    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "n" * 57, "6", "1", "x86_64")))
    with pytest.raises(PreflightError, match="57 characters"):
        mpirun.run_mpirun([], {"AZCP_STATE_DIR": str(tmp_path)})
