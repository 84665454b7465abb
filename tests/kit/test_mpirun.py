"""Ranks start with this environment's mpirun, whatever other MPI the surroundings point at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from azcp_kit.child import start, stop
from azcp_kit.mpirun import find_mpirun, mpirun_argv, rank_environment, run_ranks
from azcp_runtime.contract import PreflightError

from tests.lab.waiting import wait_until

PREFIX = Path("/venv")
WORLD = "from mpi4py import MPI; import sys; sys.exit(MPI.COMM_WORLD.size)"
HOLD_A_CHILD = """
import os, sys
from azcp_kit.child import start
child = start(["/bin/sleep", "600"], os.environ)
print(child.pid, flush=True)
sys.stdin.read()
"""


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie that nobody has collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    "name", ["OPAL_PREFIX", "OMPI_MCA_pml", "PMIX_INSTALL_PREFIX", "SLURM_JOB_ID", "UCX_TLS", "LD_PRELOAD"]
)
def test_what_belongs_to_another_mpi_is_dropped(name: str) -> None:
    assert name not in rank_environment({name: "foreign", "HOME": "/root"}, PREFIX, root=False)


def test_the_rest_of_the_environment_stays() -> None:
    assert rank_environment({"HOME": "/root"}, PREFIX, root=False)["HOME"] == "/root"


def test_the_library_of_this_environment_comes_first() -> None:
    environment = rank_environment({"LD_LIBRARY_PATH": "/opt/python/lib"}, PREFIX, root=False)
    assert environment["LD_LIBRARY_PATH"] == "/venv/lib:/opt/python/lib"
    assert environment["MPI4PY_LIBMPI"] == "/venv/lib/libmpi.so.40"


@pytest.mark.parametrize("root", [True, False])
def test_only_root_tells_mpirun_that_it_may_be_root(root: bool) -> None:
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in rank_environment({}, PREFIX, root=root)) is root


def test_more_ranks_than_cores_are_allowed() -> None:
    argv = mpirun_argv(Path("/venv/bin/mpirun"), 4, ["true"])
    assert argv[:3] == ["/venv/bin/mpirun", "-n", "4"]
    assert "--oversubscribe" in argv
    assert argv[-1] == "true"


def test_an_environment_without_mpirun_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(PreflightError, match="make venv"):
        find_mpirun()


def test_all_ranks_are_one_world_in_hostile_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPAL_PREFIX", "PMIX_INSTALL_PREFIX", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("OMPI_MCA_pml", "nothing")
    assert run_ranks(3, [sys.executable, "-c", WORLD], {}) == 3


def test_ranks_start_on_a_machine_without_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_ranks(2, [sys.executable, "-c", WORLD], {}) == 2


def test_a_stopped_child_is_gone_with_all_that_it_started(tmp_path: Path) -> None:
    process = start(["/bin/sh", "-c", f"sleep 600 & echo $! >{tmp_path}/pid; wait"], os.environ)
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "", 10, "it started")
    stop(process)
    assert process.returncode == -signal.SIGTERM
    wait_until(lambda: not is_running(int((tmp_path / "pid").read_text())), 10, "its child is gone")


def test_a_child_that_ended_by_itself_can_be_stopped() -> None:
    process = start(["/bin/true"], os.environ)
    process.wait()
    stop(process)
    assert process.returncode == 0


def test_a_child_dies_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_A_CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_running(child), 10, "the child is gone")
