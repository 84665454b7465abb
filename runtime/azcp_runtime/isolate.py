"""The environment in which everything below /opt/azcp/bin runs, whatever the base image has in its own.

One variable of another MPI, Python or loader is enough to break this one: OPAL_PREFIX, PMIX_INSTALL_PREFIX,
SLURM_JOBID, LD_PRELOAD were each seen to. What the user wants there is said as AZCP_ENV_NAME=value.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NoReturn

from azcp_runtime.contract.image import (
    BIN,
    ENV_CLEAN,
    ENV_INDEX,
    ENV_RESTORED,
    ENV_SSH_KEYS,
    ENV_SSH_PORT,
    ENV_STATE_DIR,
    MCA_PARAMS,
    OPENMPI,
)

_FOREIGN: Final = (
    *("OMPI_", "OPAL_", "ORTE_", "PMIX_", "PMI_", "PMI2_", "PRTE_", "MPI_", "MPI4PY_", "MPIEXEC_", "HYDRA_"),
    *("HPCX_", "I_MPI_", "MPICH_", "MV2_", "UCX_", "UCC_", "HCOLL_", "SHARP_", "FI_", "MELLANOX_"),
    # Open MPI asks these whether it is inside somebody's allocation, and would start through it.
    *("SLURM_", "SLURMD_", "PBS_", "LSB_", "FLUX_", "JSM_", "PE_HOSTFILE"),
    *("LD_", "GCONV_PATH", "LOCPATH", "GLIBC_TUNABLES", "OPENSSL_"),
    *("PYTHON", "PIP_", "VIRTUAL_ENV", "CONDA"),
)
"""How the names begin that are dropped."""

_RANK: Final = (
    *("PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER_", "PMIX_SYSTEM_TMPDIR", "PMIX_HOSTNAME", "PMIX_VERSION"),
    *("PMIX_SECURITY_MODE", "PMIX_PTL_MODULE", "PMIX_BFROP_BUFFER_TYPE", "PMIX_GDS_MODULE", "PMIX_DSTORE_"),
    *("PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_"),
    *("SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
)
"""What makes a process a rank of the launcher that started it: kept, so that the world's size is checked."""

_STEP: Final = ("SLURM_NODELIST", "SLURM_JOBID", "SLURM_JOB_ID", "SLURM_STEPID", "SLURM_STEP_ID")
"""Without them Open MPI 4 takes a rank that srun has started for a program without any launcher, although it
has PMIx; with them and without PMIx it gives up before the world's size can be checked."""

_PLAIN: Final = {"PMIX_SECURITY_MODE": "native", "PMIX_GDS_MODULE": "hash"}
"""Of what a PMIx server offers, what every version has and means the same by.

Slurm names munge first, which not every build can prove itself with. And where a server of version 4 shares
its memory, a rank of version 3 was seen to leave MPI_Init before the others were ready for its messages.
"""

ENV_TCP_EXCLUDE: Final = "OMPI_MCA_btl_tcp_if_exclude"
BRIDGES: Final = "127.0.0.1/8,docker0,podman0,virbr0,lxcbr0,nerdctl0"
"""Bridges of a node's container engines have the same address on every node: who connects through them hangs.
They are left out here and not in the file of settings, where a rank that names its interface would
find them: Open MPI does not take both."""

_HANDED: Final = ("AZCP_", "AZURE_", "IDENTITY_", "IMDS_", "MSI_")
"""How the names begin that the launcher's node hands to every rank."""

_HANDED_WHOLE: Final = frozenset(
    {
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
        *("http_proxy", "https_proxy", "no_proxy", "all_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    }
)

_NODE_LOCAL: Final = frozenset({ENV_CLEAN, ENV_STATE_DIR, ENV_SSH_KEYS, ENV_INDEX})
"""Ours, but each node has its own."""


def scrubbed(env: Mapping[str, str], *, is_rank: bool = False) -> dict[str, str]:
    """What is left of an environment for our own processes, and what the user restored in it.

    Args:
        env: the container's.
        is_rank: keep what a foreign launcher told its rank.
    """
    of_launcher: tuple[str, ...] = ()
    if is_rank:
        of_launcher = (*_RANK, *(_STEP if "PMIX_RANK" in env else ()))
    kept = {
        name: value
        for name, value in env.items()
        if not name.startswith(_FOREIGN) or name.startswith(of_launcher)
    }
    return kept | _plain(kept) | restored(env)


def _plain(kept: Mapping[str, str]) -> dict[str, str]:
    """What a rank speaks with the server of its launcher."""
    return {name: plain for name, plain in _PLAIN.items() if plain in kept.get(name, "").split(",")}


def restored(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that AZCP_ENV_NAME=value asks for."""
    return {
        name.removeprefix(ENV_RESTORED): value
        for name, value in env.items()
        if name.startswith(ENV_RESTORED) and name != ENV_RESTORED
    }


def mpi_environment(
    env: Mapping[str, str], state: Path, uid: int, *, is_rank: bool = False
) -> dict[str, str]:
    """A clean environment for mpirun, its daemons and its ranks.

    Args:
        env: the container's.
        state: the folder that is writable for sure.
        uid: who we are.
        is_rank: keep what a foreign launcher told its rank.
    """
    own = {
        ENV_CLEAN: "1",
        ENV_STATE_DIR: str(state),
        "OPAL_PREFIX": OPENMPI,
        "MPI4PY_LIBMPI": f"{OPENMPI}/lib/libmpi.so.40",
        # This file alone: neither ~/.openmpi nor the prefix's own have a say.
        "OMPI_MCA_mca_base_param_files": MCA_PARAMS,
        "PMIX_MCA_mca_base_param_files": os.devnull,
        # Not as orte_tmpdir_base: mpirun would force its own node's folder on the others.
        "TMPDIR": str(state),
        # mpirun looks for a program that was given without its folder there.
        "PATH": f"{BIN}:{env.get('PATH') or os.defpath}",
        # UCX writes its warnings to standard output otherwise, where the summary is.
        "UCX_LOG_FILE": "stderr",
        # The remote-shell launcher wants to know one, and adds shell text for any but this. It is not run.
        "SHELL": "/bin/bash",
    }
    if f"{ENV_RESTORED}OMPI_MCA_btl_tcp_if_include" not in env:
        own[ENV_TCP_EXCLUDE] = BRIDGES
    if uid == 0:
        own |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {"HOME": str(state)} | scrubbed(env, is_rank=is_rank) | own | restored(env)


def is_handed(name: str) -> bool:
    """Whether the launcher's variable of that name belongs to each rank."""
    return name in _HANDED_WHOLE or (name.startswith(_HANDED) and name not in _NODE_LOCAL | {ENV_SSH_PORT})


def handed_names(env: Mapping[str, str]) -> list[str]:
    """Names for mpirun's -x. Its own OMPI_ variables reach the ranks without, and a name is no secret."""
    names = {name for name in env if is_handed(name)} | set(restored(env))
    return sorted(name for name in names if not name.startswith("OMPI_") and name in env)


def node_variables(container: Mapping[str, str]) -> dict[str, str]:
    """What a node's daemon takes over from its container: a remote shell may have started it without."""
    taken = (*_NODE_LOCAL, ENV_SSH_PORT)
    return {name: value for name, value in container.items() if is_handed(name) or name in taken}


def is_clean(env: Mapping[str, str]) -> bool:
    """Whether the process was started from one of ours."""
    return env.get(ENV_CLEAN) == "1"


def start_again(env: Mapping[str, str]) -> NoReturn:
    """Replace this process by itself in another environment: the loader has read the old one already."""
    os.execve(sys.executable, sys.orig_argv, {**env, ENV_CLEAN: "1"})  # noqa: S606 - no shell wanted


def command(name: str, arguments: Iterable[str] = ()) -> list[str]:
    """The argument list of one of our commands."""
    return [f"{BIN}/{name}", *arguments]
