"""Each base image is what it stands for."""

from __future__ import annotations

import os

import pytest
from docker import DockerClient
from docker.errors import APIError

from tests.lab.bases import Bases
from tests.lab.containers import OWNER, created, remove_leftovers, run
from tests.lab.waiting import wait_until

DEADLINE_S = 30.0
# The kernel's highest process id is 2^22.
NOBODY = str(2**22 + 1)


@pytest.mark.parametrize(
    ("name", "version"),
    [("debian11", "2.31"), ("debian12", "2.36"), ("debian13", "2.41"), ("oldglibc", "2.12")],
)
def test_a_base_has_the_glibc_of_its_release(
    docker: DockerClient, bases: Bases, name: str, version: str
) -> None:
    ended = run(docker, bases(name), ["ldd", "--version"])
    assert ended.stdout.splitlines()[0].split()[-1] == version


def test_debian_12_has_a_python_with_a_package_to_list(docker: DockerClient, bases: Bases) -> None:
    ended = run(docker, bases("debian12"), ["python3", "-m", "pip", "freeze"])
    assert ended.stdout.startswith("packaging==")


def test_a_base_that_exists_is_not_built_again(docker: DockerClient, bases: Bases) -> None:
    first = docker.images.get(bases("swallows")).attrs
    assert docker.images.get(bases("swallows")).attrs == first


def test_the_base_of_user_1000_runs_on_a_read_only_root(docker: DockerClient, bases: Bases) -> None:
    ended = run(docker, bases("user1000"), ["sh", "-c", "id -u; touch x"], read_only=True)
    assert ended.stdout == "1000\n"
    assert "Read-only file system" in ended.stderr


def test_the_swallowing_base_runs_something_else_than_asked(docker: DockerClient, bases: Bases) -> None:
    with created(docker, bases("swallows"), ["echo", "hello"]) as container:
        container.start()
        wait_until(lambda: "sleep infinity" in str(container.top()), DEADLINE_S, "the entrypoint sleeps")
        assert container.logs() == b""


def test_the_hostile_base_has_two_open_mpis_and_its_own_first(docker: DockerClient, bases: Bases) -> None:
    script = (
        "mpirun --version; env -i /usr/bin/mpirun --version; mpirun --allow-run-as-root -n 2 echo started"
    )
    ended = run(docker, bases("hostile"), ["bash", "-c", script])
    assert "(Open MPI) 4.1.7" in ended.stdout
    assert "(Open MPI) 4.1.4" in ended.stdout
    assert ended.stdout.count("started\n") == 2


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("/usr/bin/python3 -c 'import mpi4py'", "belongs to the MPI of the base image"),
        ("mpirun --allow-run-as-root -n 1 -H elsewhere true", "this remote shell belongs to the base image"),
    ],
)
def test_the_hostile_bases_environment_reaches_whoever_inherits_it(
    docker: DockerClient, bases: Bases, script: str, complaint: str
) -> None:
    ended = run(docker, bases("hostile"), ["bash", "-c", script])
    assert ended.status != 0
    assert complaint in ended.stderr


def test_the_hostile_base_loads_a_library_into_every_process(docker: DockerClient, bases: Bases) -> None:
    assert "libjemalloc.so.2" in run(docker, bases("hostile"), ["cat", "/proc/self/maps"]).stdout


def test_a_base_has_no_lists_of_apt(docker: DockerClient, bases: Bases) -> None:
    assert run(docker, bases("noaptlists"), ["test", "-e", "/var/lib/apt/lists"]).status == 1


def test_a_base_has_a_source_on_which_apt_fails(docker: DockerClient, bases: Bases) -> None:
    ended = run(
        docker, bases("brokensource"), ["apt-get", "update", "-oAcquire::Retries=0"], network_mode="none"
    )
    assert ended.status == 100
    assert "/opt/vendor/repository" in ended.stderr


def test_the_base_without_a_shell_has_a_glibc_that_works(docker: DockerClient, bases: Bases) -> None:
    assert run(docker, bases("noshell"), ["0"]).status == 0
    with pytest.raises(APIError, match="no such file or directory"):
        run(docker, bases("noshell"), [], entrypoint=["/bin/sh"])


def test_alpine_is_real(docker: DockerClient, bases: Bases) -> None:
    ended = run(docker, bases("alpine"), ["sh", "-c", "apk --version && ls /lib"])
    assert ended.status == 0
    assert "ld-musl-" in ended.stdout


def test_busybox_has_no_libc(docker: DockerClient, bases: Bases) -> None:
    ended = run(docker, bases("busybox"), ["sh", "-c", "ls /; ls /lib*"])
    assert ended.status != 0
    assert "bin" in ended.stdout.split()


def test_the_config_of_a_base_says_arm64(docker: DockerClient, bases: Bases) -> None:
    assert docker.images.get(bases("wrongarch")).attrs["Architecture"] == "arm64"


@pytest.mark.parametrize(("name", "distribution"), [("ubuntu24", "ubuntu"), ("rocky9", "rocky")])
def test_a_base_says_that_it_is_another_distribution(
    docker: DockerClient, bases: Bases, name: str, distribution: str
) -> None:
    assert f'ID="{distribution}"\n' in run(docker, bases(name), ["cat", "/etc/os-release"]).stdout


def test_what_this_run_or_a_killed_one_left_is_removed(docker: DockerClient, bases: Bases) -> None:
    owners = [str(os.getpid()), NOBODY]
    for owner in owners:
        docker.containers.create(bases("busybox"), labels={OWNER: owner})
        docker.networks.create("left", labels={OWNER: owner})
    remove_leftovers(docker)
    for owner in owners:
        mark = f"{OWNER}={owner}"
        assert docker.containers.list(all=True, filters={"label": mark}) == []
        assert docker.networks.list(filters={"label": mark}) == []
