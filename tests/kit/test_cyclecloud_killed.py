"""A script of a CycleCloud project can be killed at any command; the next start finishes what it began."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.cyclecloud import (
    Releases,
    install_project,
    made_up_pyxis,
    needs_vm,
    passed,
    script,
    sha256,
    stand_for_slurm,
)
from tests.lab.file_server import FileServer
from tests.lab.loop_disks import loop_disk, show_disk
from tests.lab.throwaway import Throwaway

pytestmark = needs_vm

STEP = 9
"""Every so many commands one is tried: all of them take a minute per script, and were tried once."""

LAST = 1000
# bash reads it before the script, and counts the commands.
KILL = "set -T\ncount=0\ntrap '((++count == KILL_AT)) && kill -9 $$' DEBUG\n"


def is_killed(machine: Throwaway, path: str, at: int) -> bool:
    """Run a script, to be killed before that command; false if it ended before."""
    machine.write("/kill.sh", KILL)
    ended = script(machine, path, BASH_ENV="/kill.sh", KILL_AT=str(at))
    assert ended.returncode in {0, -9}, ended.stdout
    return ended.returncode != 0


def lines(output: str) -> list[str]:
    """What was said, without the time."""
    return [line.partition(": ")[2] for line in output.splitlines()]


def test_the_nvme_script(tmp_path: Path) -> None:
    path = "execute/scripts/20-nvme.sh"
    for at in range(1, LAST, STEP):
        with loop_disk(tmp_path / "disk.img") as disk, Throwaway(tmp_path / f"vm-{at}") as vm:
            install_project(vm)
            show_disk(vm, "nvme0n1", disk)
            killed = is_killed(vm, path, at)
            passed(vm, path)
            assert lines(passed(vm, path)) == ["/dev/nvme0n1 is mounted on /mnt/nvme already"], at
            assert vm.said("stat", "-c", "%a", "/mnt/nvme") == "1777\n"
            assert vm.path("/etc/fstab").read_text().count("/mnt/nvme") == 1
            assert list(vm.path("/var/lib/azcp").iterdir()) == []
        if not killed:
            return
    pytest.fail("the script does not end")


@pytest.fixture
def releases() -> Iterator[Releases]:
    """Where pyxis' source comes from."""
    source = made_up_pyxis()
    with FileServer({"/pyxis/v0.20.0.tar.gz": source}) as server:
        yield Releases(server.url(""), {"v0.20.0.tar.gz": sha256(source)})


@contextmanager
def vm_of_a_cluster(place: Path, shared: Path, releases: Releases) -> Iterator[Throwaway]:
    """A VM with Slurm that sees the shared folder."""
    with Throwaway(place, {"/sched": shared}) as vm:
        install_project(vm, releases)
        stand_for_slurm(vm)
        yield vm


def test_the_scripts_that_build_and_hand_over_pyxis(tmp_path: Path, releases: Releases) -> None:
    path = "scheduler/scripts/20-pyxis-build.sh"
    for at in range(1, LAST, STEP):
        shared = tmp_path / f"sched-{at}"
        shared.mkdir(mode=0o755)
        with vm_of_a_cluster(tmp_path / f"vm-{at}", shared, releases) as vm:
            killed = is_killed(vm, path, at)
            passed(vm, path)
            name = "pyxis-0.20.0_slurm-23.11.9_x86_64"
            assert lines(passed(vm, path)) == [f"{name} is handed over already"], at
            passed(vm, "scheduler/scripts/30-pyxis.sh")
            passed(vm, "scheduler/tests/test-pyxis.sh")
        if not killed:
            return
    pytest.fail("the script does not end")


def test_the_script_that_takes_pyxis_over(tmp_path: Path, releases: Releases) -> None:
    path = "execute/scripts/50-pyxis.sh"
    shared = tmp_path / "sched"
    shared.mkdir(mode=0o755)
    with vm_of_a_cluster(tmp_path / "scheduler", shared, releases) as scheduler:
        passed(scheduler, "scheduler/scripts/20-pyxis-build.sh")
    for at in range(1, LAST, STEP):
        with vm_of_a_cluster(tmp_path / f"vm-{at}", shared, releases) as vm:
            killed = is_killed(vm, path, at)
            passed(vm, path)
            restarts = vm.path("/restarts").read_text()
            assert restarts, at
            passed(vm, path)
            assert vm.path("/restarts").read_text() == restarts, at
            passed(vm, "execute/tests/test-pyxis.sh")
        if not killed:
            return
    pytest.fail("the script does not end")
