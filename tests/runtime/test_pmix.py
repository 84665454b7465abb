"""Which PMIx is told of either side, before MPI starts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from azcp_runtime.__main__ import main
from azcp_runtime.mpi.pmix import mpi_folder, own_version, pmix_line

OF_SRUN = {"PMIX_RANK": "0", "PMIX_VERSION": "4.2.2"}


def compiled(folder: Path, name: str, source: str) -> None:
    """A library of one function."""
    argv = ["cc", "-shared", "-fPIC", "-x", "c", "-o", str(folder / name), "-"]
    subprocess.run(argv, check=True, input=source, text=True)


def test_the_mpi_of_this_environment_tells_its_own_version() -> None:
    version = own_version(Path(sys.prefix, "lib"))
    assert version is not None
    assert re.match(r"[345]\.\d+\.\d+", version)


@pytest.mark.parametrize("call", ["PMIx_Get_version", "OPAL_MCA_PMIX3X_PMIx_Get_version"])
def test_it_is_found_under_both_names_and_between_words(tmp_path: Path, call: str) -> None:
    compiled(tmp_path, "libpmix.so.2", f'const char *{call}(void) {{ return "OpenPMIx 5.0.3, repo rev x"; }}')
    assert own_version(tmp_path) == "5.0.3"


def test_what_is_no_library_has_no_version(tmp_path: Path) -> None:
    (tmp_path / "libpmix.so.2").write_text("nothing")
    assert own_version(tmp_path) is None
    line = pmix_line(OF_SRUN, tmp_path)
    assert line == (
        "[pmix] Slurm's plugin speaks PMIx 4.2.2; "
        "the Open MPI of this program speaks PMIx of a version that it does not tell"
    )


def test_a_step_without_pmix_and_a_folder_that_no_container_sees_are_said(tmp_path: Path) -> None:
    assert "has started this task without PMIx" in pmix_line({}, tmp_path)
    hidden = {**OF_SRUN, "PMIX_SERVER_TMPDIR": str(tmp_path / "gone")}
    assert f"whose folder {tmp_path / 'gone'} is not to be seen in here" in pmix_line(hidden, tmp_path)
    seen = {**OF_SRUN, "PMIX_SERVER_TMPDIR": str(tmp_path)}
    assert "folder" not in pmix_line(seen, tmp_path)


def test_the_library_that_is_named_is_the_one_that_counts() -> None:
    assert mpi_folder({"MPI4PY_LIBMPI": "/opt/x/lib/libmpi.so.40"}, "/venv") == Path("/opt/x/lib")
    assert mpi_folder({"MPI4PY_LIBMPI": "libmpi.so.40"}, "/venv") == Path("/venv/lib")
    assert mpi_folder({}, "/venv") == Path("/venv/lib")


def test_the_first_task_tells_it_without_starting_mpi(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PMIX_RANK", "0")
    monkeypatch.setenv("PMIX_VERSION", "4.2.2")
    assert main(["/source", "/dest", "--stage", "pmix"]) == 0
    assert capsys.readouterr().err.startswith("[pmix] Slurm's plugin speaks PMIx 4.2.2; ")
    monkeypatch.setenv("PMIX_RANK", "1")
    assert main(["/source", "/dest", "--stage", "pmix"]) == 0
    assert capsys.readouterr().err == ""
