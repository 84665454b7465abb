"""Every MPI of an image is found, by whatever leads to it, and every variable that would leak from it."""

from __future__ import annotations

import pytest
from azcp_kit.inspect.detect_leaks import detect_leaks
from azcp_kit.inspect.detect_mpi import prefix_of
from azcp_kit.inspect.facts import MpiKind
from azcp_kit.inspect.mpi_library import identify

from tests.kit.image_tree import Content, Link, elf, facts_of, ld_cache

OPEN_MPI = b"\0v4.1.4\0Open MPI\0a file tells 4.1.4 to dump all\0"
HPC_X_OPEN_MPI = b"\0Open MPI\0tells 4.1.7a1 to dump all\0"
MPICH = b"\0MPICH Version:\t%s\n\x004.0.2\x000.13.99\0"
INTEL = b"\x001.3.2\0Intel(R) MPI Library %s for Linux* OS\n\x002021.10.0\0MPICH Version:"

NGC: dict[str, Content] = {
    "/usr/local/mpi": Link("/opt/hpcx/ompi"),
    "/opt/hpcx/ompi/bin/mpirun": Link("orterun"),
    "/opt/hpcx/ompi/bin/mpiexec": Link("orterun"),
    "/opt/hpcx/ompi/bin/orterun": elf(),
    "/opt/hpcx/ompi/lib/libmpi.so": Link("libmpi.so.40.30.7"),
    "/opt/hpcx/ompi/lib/libmpi.so.40": Link("libmpi.so.40.30.7"),
    "/opt/hpcx/ompi/lib/libmpi.so.40.30.7": HPC_X_OPEN_MPI,
}
NGC_ENV = [
    "PATH=/usr/local/mpi/bin:/usr/bin",
    "OPAL_PREFIX=/opt/hpcx/ompi",
    "LD_LIBRARY_PATH=/usr/local/mpi/lib:/usr/local/nvidia/lib",
    "OMPI_MCA_coll_hcoll_enable=0",
    "UCX_MEMTYPE_CACHE=n",
    "PIP_CONSTRAINT=/etc/pip/constraint.txt",
    "PYTHONIOENCODING=utf-8",
    "NCCL_VERSION=2.22.3",
    "HPCX_VERSION=2.20",
]
DEBIAN: dict[str, Content] = {
    "/usr/bin/mpirun": Link("/etc/alternatives/mpirun"),
    "/etc/alternatives/mpirun": Link("/usr/bin/mpirun.openmpi"),
    "/usr/bin/mpirun.openmpi": Link("orterun"),
    "/usr/bin/orterun": elf(),
    "/usr/bin/mpiexec.hydra": elf(),
    "/usr/lib/x86_64-linux-gnu/libmpi.so.40": Link("libmpi.so.40.30.4"),
    "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4": OPEN_MPI,
    "/usr/lib/x86_64-linux-gnu/libmpich.so.12": Link("libmpich.so.12.2.2"),
    "/usr/lib/x86_64-linux-gnu/libmpich.so.12.2.2": MPICH,
}


def test_an_ngc_like_image_has_one_hpc_x_with_all_the_ways_to_it() -> None:
    (mpi,) = facts_of(NGC, {"Env": NGC_ENV}).mpis
    assert (mpi.kind, mpi.version, mpi.prefix) == (MpiKind.HPC_X, "4.1.7a1", "/opt/hpcx/ompi")
    assert mpi.launcher == "/usr/local/mpi/bin/mpirun"
    assert mpi.found_by == (
        "PATH /usr/local/mpi/bin/mpirun",
        "ENV OPAL_PREFIX",
        "ENV LD_LIBRARY_PATH",
        "folder /opt/hpcx/ompi",
        "folder /usr/local/mpi",
    )


def test_every_variable_of_it_that_leaks_is_told_with_its_effect() -> None:
    leaks = facts_of(NGC, {"Env": NGC_ENV}).leaks
    assert [leak.name for leak in leaks] == [
        "OPAL_PREFIX",
        "LD_LIBRARY_PATH",
        "OMPI_MCA_coll_hcoll_enable",
        "UCX_MEMTYPE_CACHE",
        "PIP_CONSTRAINT",
        "PYTHONIOENCODING",
        "HPCX_VERSION",
    ]
    assert "plugins" in leaks[0].effect


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("LD_PRELOAD", "every program"),
        ("OMPI_MCA_btl", "transport"),
        ("OMPI_MCA_plm_rsh_agent", "starts its ranks"),
        ("PMIX_INSTALL_PREFIX", "plugins"),
        ("SLURM_JOB_ID", "batch job"),
        ("PYTHONHOME", "standard library"),
        ("PYTHONPATH", "in place of"),
        ("I_MPI_ROOT", "another MPI"),
    ],
)
def test_a_variable_is_told_with_what_it_does(name: str, effect: str) -> None:
    (leak,) = detect_leaks({name: "x"})
    assert effect in leak.effect


@pytest.mark.parametrize("name", ["PATH", "NCCL_DEBUG", "MY_UCX_TLS", "FILE_X", "SPYTHON", "LANG", ""])
def test_a_variable_that_nothing_obeys_is_no_leak(name: str) -> None:
    assert detect_leaks({name: "x"}) == ()


def test_two_mpis_of_debian_share_a_prefix_and_keep_their_own_launchers() -> None:
    mpis = facts_of(DEBIAN).mpis
    assert [(mpi.kind, mpi.version, mpi.prefix, mpi.launcher) for mpi in mpis] == [
        (MpiKind.OPEN_MPI, "4.1.4", "/usr", "/usr/bin/mpirun"),
        (MpiKind.MPICH, "4.0.2", "/usr", "/usr/bin/mpiexec.hydra"),
    ]


def test_an_mpi_that_only_the_loaders_cache_knows_is_found() -> None:
    files: dict[str, Content] = {
        "/etc/ld.so.cache": ld_cache({"libmpi.so.40": "/srv/ompi/lib/libmpi.so.40"}),
        "/srv/ompi/lib/libmpi.so.40": OPEN_MPI,
    }
    (mpi,) = facts_of(files).mpis
    assert (mpi.prefix, mpi.launcher, mpi.found_by) == ("/srv/ompi", "", ("ld.so.cache",))


def test_the_mpi_of_mofed_is_found_whatever_its_version() -> None:
    (mpi,) = facts_of({"/usr/mpi/gcc/openmpi-4.1.7rc1/lib64/libmpi.so.40": OPEN_MPI}).mpis
    assert mpi.found_by == ("folder /usr/mpi/gcc/openmpi-4.1.7rc1",)


def test_intel_mpi_is_found_through_its_root() -> None:
    root = "/opt/intel/oneapi/mpi/2021.10.0"
    (mpi,) = facts_of({f"{root}/lib/release/libmpi.so.12": INTEL}, {"Env": [f"I_MPI_ROOT={root}"]}).mpis
    assert (mpi.kind, mpi.version, mpi.prefix) == (MpiKind.INTEL, "2021.10.0", root)


def test_a_launcher_without_a_library_is_an_unknown_mpi() -> None:
    (mpi,) = facts_of({"/usr/bin/mpirun": b"#!/bin/sh\n", "/usr/bin/mpiexec": b"#!/bin/sh\n"}).mpis
    assert (mpi.kind, mpi.launcher, mpi.library) == (MpiKind.UNKNOWN, "/usr/bin/mpirun", "")


def test_what_was_injected_is_no_mpi_of_the_base() -> None:
    ours: dict[str, Content] = {
        "/opt/azcp/openmpi/bin/mpirun": elf(),
        "/opt/azcp/openmpi/lib/libmpi.so.40": OPEN_MPI,
        "/usr/local/bin/mpirun": Link("/opt/azcp/openmpi/bin/mpirun"),
    }
    assert facts_of(ours, {"Env": ["PATH=/opt/azcp/openmpi/bin:/usr/local/bin"]}).mpis == ()


@pytest.mark.parametrize(
    ("content", "kind", "version"),
    [
        (OPEN_MPI, MpiKind.OPEN_MPI, "4.1.4"),
        (b"Open MPI\0tells 5.0.8 to dump", MpiKind.OPEN_MPI, "5.0.8"),
        (b"Open MPI\0v4.0.0rc2\0", MpiKind.OPEN_MPI, "4.0.0rc2"),
        (b"Open MPI", MpiKind.OPEN_MPI, ""),
        (MPICH, MpiKind.MPICH, "4.0.2"),
        (INTEL, MpiKind.INTEL, "2021.10.0"),
        (b"INPUT(-lmpi_abi)", MpiKind.UNKNOWN, ""),
        (b"", MpiKind.UNKNOWN, ""),
    ],
)
def test_a_library_says_what_it_is(content: bytes, kind: MpiKind, version: str) -> None:
    assert identify(content) == (kind, version)


@pytest.mark.parametrize(
    ("library", "prefix"),
    [
        ("/usr/lib64/openmpi/lib/libmpi.so.40", "/usr/lib64/openmpi"),
        ("/usr/lib/x86_64-linux-gnu/libmpi.so.40", "/usr"),
        ("/opt/intel/mpi/lib/release/libmpi.so.12", "/opt/intel/mpi"),
        ("/opt/odd/libmpi.so.40", "/opt/odd"),
        ("/lib/libmpi.so.40", ""),
    ],
)
def test_a_library_belongs_to_the_folder_above_lib(library: str, prefix: str) -> None:
    assert prefix_of(library) == prefix


def test_a_path_of_thousands_of_folders_is_cut() -> None:
    folders = ":".join(f"/f{number}" for number in range(5000))
    env = [f"PATH={folders}", f"LD_LIBRARY_PATH={folders}"]
    assert facts_of({"/f4000/mpirun": elf()}, {"Env": env}).mpis == ()
