"""What Open MPI is told before it starts, and that it listens; who says otherwise wins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from azcp_runtime.mpi.settings import DEFAULTS, missing_settings

from tests.lab.mpi import MPIRUN

FLAGS = "OMPI_MCA_btl_tcp_flags"
PROGRAM = """
import ctypes, os
from azcp_runtime.mpi.world import World
world = World(os.environ, 60.0, 60.0)
mpi = ctypes.CDLL(os.environ["MPI4PY_LIBMPI"])
at, handle, count, value = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint()
assert not mpi.MPI_T_init_thread(0, ctypes.byref(at))
assert not mpi.MPI_T_cvar_get_index(b"btl_tcp_flags", ctypes.byref(at))
assert not mpi.MPI_T_cvar_handle_alloc(at, None, ctypes.byref(handle), ctypes.byref(count))
assert not mpi.MPI_T_cvar_read(handle, ctypes.byref(value))
print(f"flags {value.value:#x}")
world.leave()
"""
WITHOUT_PUT = "flags 0x139"


def flags_of_a_rank(tmp_path: Path, *options: str, env: dict[str, str] | None = None) -> str:
    """What Open MPI's TCP works with in a rank that was started so."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_")}
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "HOME": str(tmp_path)}
    command = [str(MPIRUN), "-n", "1", "--mca", "btl", "tcp,self", "--mca", "pml", "ob1", *options]
    done = subprocess.run(
        [*command, sys.executable, "-c", PROGRAM],
        env=clean | root | (env or {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_tcp_sends_without_asking_for_each_message(tmp_path: Path) -> None:
    assert flags_of_a_rank(tmp_path) == WITHOUT_PUT


def test_the_command_line_and_the_environment_of_mpirun_overrule_it(tmp_path: Path) -> None:
    assert flags_of_a_rank(tmp_path, "--mca", "btl_tcp_flags", "send,put") == "flags 0x3"
    assert flags_of_a_rank(tmp_path, env={FLAGS: "send,inplace"}) == "flags 0x9"


def test_a_file_of_parameters_overrules_it(tmp_path: Path) -> None:
    (tmp_path / ".openmpi").mkdir()
    (tmp_path / ".openmpi" / "mca-params.conf").write_text("# mine\n btl_tcp_flags = send,put,inplace\n")
    assert flags_of_a_rank(tmp_path) == "flags 0xb"


def test_nothing_is_set_that_the_environment_says() -> None:
    env = {f"OMPI_MCA_{name}": "of the user" for name in DEFAULTS}
    assert missing_settings(env, Path("/nowhere")) == {}
    assert missing_settings({}, Path("/nowhere")).keys() == env.keys()


@pytest.mark.parametrize("separator", [",", ":"])
def test_only_the_files_that_are_named_are_asked(tmp_path: Path, separator: str) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "openmpi-mca-params.conf").write_text("btl_tcp_flags = send")
    named = tmp_path / "named.conf"
    named.write_text("#btl_tcp_flags = send\nmpi_yield_when_idle=0\n")
    env = {"OMPI_MCA_mca_base_param_files": f"/absent{separator}{named}"}
    assert FLAGS in missing_settings(env, tmp_path)
    assert "OMPI_MCA_mpi_yield_when_idle" not in missing_settings(env, tmp_path)
    assert FLAGS not in missing_settings({}, tmp_path)
