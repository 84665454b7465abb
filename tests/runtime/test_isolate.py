"""What the base image has in its environment never reaches our own MPI and Python."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from azcp_runtime.contract.image import MCA_PARAMS, OPENMPI
from azcp_runtime.isolate import handed_names, is_clean, mpi_environment, node_variables, scrubbed

STATE = Path("/run/azcp")


@pytest.mark.parametrize(
    "name",
    [
        *("OPAL_PREFIX", "OMPI_MCA_pml", "PMIX_INSTALL_PREFIX", "PMIX_MCA_psec", "PRTE_MCA_plm", "UCX_TLS"),
        *("HPCX_DIR", "MPI_HOME", "SLURM_JOBID", "PBS_NODEFILE", "LD_LIBRARY_PATH", "LD_PRELOAD"),
        *("PYTHONPATH", "PYTHONHOME", "PIP_CONSTRAINT", "VIRTUAL_ENV", "CONDA_PREFIX", "OPENSSL_CONF"),
    ],
)
def test_a_variable_that_breaks_a_foreign_mpi_or_python_is_dropped(name: str) -> None:
    assert scrubbed({name: "x", "PATH": "/bin"}) == {"PATH": "/bin"}


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "AZURE_CLIENT_ID", "AZCP_SAS", "https_proxy", "SSL_CERT_FILE"]
)
def test_what_a_transfer_needs_is_kept(name: str) -> None:
    assert scrubbed({name: "x"}) == {name: "x"}


def test_what_the_user_asks_for_comes_back() -> None:
    env = {"UCX_TLS": "of the base", "AZCP_ENV_UCX_TLS": "tcp", "AZCP_ENV_": "nothing"}
    assert scrubbed(env) == {"UCX_TLS": "tcp", "AZCP_ENV_UCX_TLS": "tcp", "AZCP_ENV_": "nothing"}


def test_a_rank_of_a_foreign_launcher_keeps_its_rank_and_nothing_that_breaks_mpi() -> None:
    env = {
        "PMIX_RANK": "3",
        "PMIX_NAMESPACE": "n",
        "SLURM_NTASKS": "4",
        "PMIX_INSTALL_PREFIX": "/x",
        "LD_PRELOAD": "/y",
    }
    assert scrubbed(env, is_rank=True) == {"PMIX_RANK": "3", "PMIX_NAMESPACE": "n", "SLURM_NTASKS": "4"}


def test_a_rank_of_srun_keeps_its_step_where_it_has_pmix_and_speaks_as_every_build_can() -> None:
    step = {"SLURM_NODELIST": "n1", "SLURM_JOBID": "1", "SLURM_JOB_ID": "1", "SLURM_STEPID": "0"}
    offers = {"PMIX_SECURITY_MODE": "munge,native", "PMIX_GDS_MODULE": "ds21,ds12,hash"}
    plain = {"PMIX_SECURITY_MODE": "native", "PMIX_GDS_MODULE": "hash"}
    env = {**step, **offers, "PMIX_RANK": "0", "SLURM_CONF": "/x"}
    assert scrubbed(env, is_rank=True) == {**step, **plain, "PMIX_RANK": "0"}
    assert scrubbed({"PMIX_SECURITY_MODE": "munge"}, is_rank=True) == {"PMIX_SECURITY_MODE": "munge"}
    assert scrubbed(step, is_rank=True) == {}
    assert scrubbed(env) == {}


def test_mpirun_runs_from_our_prefix_with_our_parameters_alone() -> None:
    env = mpi_environment({"OPAL_PREFIX": "/hpcx", "OMPI_MCA_mca_base_param_files": "/x"}, STATE, 1000)
    assert env["OPAL_PREFIX"] == OPENMPI
    assert env["OMPI_MCA_mca_base_param_files"] == MCA_PARAMS
    assert env["TMPDIR"] == str(STATE)
    assert is_clean(env)


@pytest.mark.parametrize(("path", "told"), [("/usr/bin", "/usr/bin"), ("", os.defpath), (None, os.defpath)])
def test_mpirun_finds_our_commands_and_has_a_path_where_the_base_has_none(
    path: str | None, told: str
) -> None:
    env = {} if path is None else {"PATH": path}
    assert mpi_environment(env, STATE, 0)["PATH"] == f"/opt/azcp/bin:{told}"


def test_only_root_needs_a_leave_to_be_root() -> None:
    assert "OMPI_ALLOW_RUN_AS_ROOT" in mpi_environment({}, STATE, 0)
    assert "OMPI_ALLOW_RUN_AS_ROOT" not in mpi_environment({}, STATE, 1000)


def test_a_uid_without_a_home_gets_one_that_it_may_write() -> None:
    assert mpi_environment({}, STATE, 1000)["HOME"] == str(STATE)
    assert mpi_environment({"HOME": "/root"}, STATE, 0)["HOME"] == "/root"


def test_the_users_own_mpi_options_win_over_ours() -> None:
    env = mpi_environment({"AZCP_ENV_OMPI_MCA_plm": "isolated"}, STATE, 0)
    assert env["OMPI_MCA_plm"] == "isolated"


def test_credentials_are_handed_to_the_ranks_by_name_and_a_nodes_own_folders_are_not() -> None:
    env = {
        "AZCP_SAS": "s",
        "AZURE_CLIENT_ID": "i",
        "IDENTITY_ENDPOINT": "e",
        "HTTPS_PROXY": "p",
        "AZCP_STATE_DIR": "/x",
        "AZCP_SSH_KEYS": "/y",
        "AZCP_CLEAN": "1",
        "AZCP_SSH_PORT": "1",
        "AZCP_INDEX": "3",
        "PATH": "/bin",
    }
    assert handed_names(env) == ["AZCP_SAS", "AZURE_CLIENT_ID", "HTTPS_PROXY", "IDENTITY_ENDPOINT"]


def test_restored_options_are_handed_too_except_mpiruns_which_it_hands_itself() -> None:
    env = scrubbed({"AZCP_ENV_UCX_TLS": "tcp", "AZCP_ENV_OMPI_MCA_pml": "ucx"})
    assert handed_names(env) == ["AZCP_ENV_OMPI_MCA_pml", "AZCP_ENV_UCX_TLS", "UCX_TLS"]


def test_a_daemon_takes_identity_and_folders_from_its_container_and_leaves_the_rest() -> None:
    container = {"AZURE_TENANT_ID": "t", "AZCP_STATE_DIR": "/s", "LD_PRELOAD": "/x", "PATH": "/bin"}
    assert node_variables(container) == {"AZURE_TENANT_ID": "t", "AZCP_STATE_DIR": "/s"}
