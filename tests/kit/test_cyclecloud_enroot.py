"""A CycleCloud project installs the enroot that was checked, once, and keeps its files on the NVMe disks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cyclecloud import (
    DEBS,
    PACKAGES,
    RPMS,
    Releases,
    failed,
    install_project,
    made_up_package,
    needs_vm,
    passed,
    script,
    sha256,
    state,
)
from tests.lab.file_server import FileServer
from tests.lab.loop_disks import loop_disk, show_disk
from tests.lab.throwaway import Throwaway

pytestmark = needs_vm

INSTALL = "execute/scripts/30-enroot.sh"
PATHS = "execute/scripts/40-enroot-paths.sh"
CONF = "/etc/enroot/enroot.conf"
BOTH = ("enroot", "enroot+caps")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a release."""
    folder = tmp_path_factory.mktemp("packages")
    made = {name: made_up_package(folder, name) for name in BOTH}
    debs = {file: made[file.partition("_")[0]] for file in DEBS}
    return debs | {file: f"rpm {file}".encode() for file in RPMS}


@pytest.fixture
def server(packages: dict[str, bytes]) -> Iterator[FileServer]:
    """Serves them."""
    with FileServer({f"/enroot/v3.5.0/{name}": body for name, body in packages.items()}) as running:
        yield running


@pytest.fixture
def machine(tmp_path: Path, server: FileServer, packages: dict[str, bytes]) -> Iterator[Throwaway]:
    """A VM with the project on it; apt is real, and asks no mirror."""
    with Throwaway(tmp_path / "vm") as vm:
        digests = {name: sha256(body) for name, body in packages.items()}
        install_project(vm, Releases(server.url(""), digests))
        vm.stand_in("apt-get", ['[ "$2" = update ] || exec /usr/bin/apt-get "$@"'])
        yield vm


def versions(machine: Throwaway) -> list[str]:
    """What dpkg says of both."""
    asked = machine.run("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status} ${Version}\n", *BOTH)
    return sorted(line for line in asked.stdout.splitlines() if " installed " in line)


INSTALLED = ["enroot installed 3.5.0-1", "enroot+caps installed 3.5.0-1"]


def test_both_packages_of_the_architecture_are_installed(server: FileServer, machine: Throwaway) -> None:
    passed(machine, INSTALL)
    assert sorted(versions(machine)) == sorted(INSTALLED)
    assert sorted(server.asked) == [
        "/enroot/v3.5.0/enroot+caps_3.5.0-1_amd64.deb",
        "/enroot/v3.5.0/enroot_3.5.0-1_amd64.deb",
    ]


def test_a_second_run_downloads_nothing(server: FileServer, machine: Throwaway) -> None:
    passed(machine, INSTALL)
    asked = list(server.asked)
    assert "installed already" in passed(machine, INSTALL)
    assert server.asked == asked


def test_arm64_gets_its_own_packages(server: FileServer, machine: Throwaway) -> None:
    machine.stand_in("uname", ["echo aarch64"])
    passed(machine, INSTALL)
    assert sorted(versions(machine)) == sorted(INSTALLED)
    assert {path.rpartition("_")[2] for path in server.asked} == {"arm64.deb"}


def test_an_architecture_without_packages_is_refused(server: FileServer, machine: Throwaway) -> None:
    machine.stand_in("uname", ["echo riscv64"])
    assert "this VM is riscv64" in failed(machine, INSTALL)
    assert server.asked == []


def test_a_package_with_another_digest_is_not_installed(server: FileServer, machine: Throwaway) -> None:
    server.bodies = {path: body + b"\0" for path, body in server.bodies.items()}
    assert "was expected" in failed(machine, INSTALL)
    assert versions(machine) == []


def test_a_download_that_is_cut_short_installs_nothing(server: FileServer, machine: Throwaway) -> None:
    # Five retries that wait longer each time are curl's own affair.
    without_retries = 'for word; do shift; [ "$word" != 5 ] || word=0; set -- "$@" "$word"; done'
    machine.stand_in("curl", [without_retries, 'exec /usr/bin/curl "$@"'])
    server.held_back = 10
    assert "no download" in failed(machine, INSTALL)
    assert versions(machine) == []


def test_a_proxy_of_the_environment_is_used(server: FileServer, machine: Throwaway) -> None:
    install_project(machine, Releases("http://releases.example", dict.fromkeys(PACKAGES, "0" * 64)))
    failed(machine, INSTALL, http_proxy=server.url(""))
    assert server.asked[0].startswith("http://releases.example/enroot/v3.5.0/enroot")


def test_another_version_is_replaced(tmp_path: Path, machine: Throwaway) -> None:
    for name in BOTH:
        machine.path(f"/{name}.deb").write_bytes(made_up_package(tmp_path, name, "4.1.2"))
        machine.said("dpkg", "--install", f"/{name}.deb")
    passed(machine, INSTALL)
    assert sorted(versions(machine)) == sorted(INSTALLED)


def test_an_installation_that_was_killed_half_way_is_finished(
    packages: dict[str, bytes], machine: Throwaway
) -> None:
    machine.path("/half.deb").write_bytes(packages["enroot_3.5.0-1_amd64.deb"])
    machine.said("dpkg", "--unpack", "/half.deb")
    assert versions(machine) == []
    passed(machine, INSTALL)
    assert sorted(versions(machine)) == sorted(INSTALLED)


@pytest.fixture
def with_rpm(machine: Throwaway) -> Throwaway:
    """The same VM without dpkg, and with programs in the place of rpm and dnf that keep a list of files."""
    machine.path("/usr/bin/dpkg").unlink()
    machine.stand_in(
        "rpm",
        [
            '[ "$1 $2" = "--query --queryformat" ] || exit 2',
            '[ "$3" = "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm" ] || exit 2',
            'found=$(grep "^$4-[0-9]" /rpms) || { echo "package $4 is not installed"; exit 1; }',
            'printf %s "$found"',
        ],
    )
    machine.stand_in(
        "dnf",
        [
            '[ "$1 $2" = "-qy install" ] || exit 2',
            "shift 2",
            'for file; do grep -q "^rpm ${file#./}$" "$file" || exit 3; echo "${file#./}" >>/rpms; done',
        ],
    )
    return machine


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_where_rpm_is_the_rpms_of_the_architecture_are_installed_once(
    architecture: str, server: FileServer, with_rpm: Throwaway
) -> None:
    with_rpm.stand_in("uname", [f"echo {architecture}"])
    passed(with_rpm, INSTALL)
    assert sorted(with_rpm.path("/rpms").read_text().split()) == sorted(
        name for name in RPMS if architecture in name
    )
    assert len(server.asked) == 2
    assert "installed already" in passed(with_rpm, INSTALL)
    assert len(server.asked) == 2


@pytest.fixture
def with_nvme(tmp_path: Path, machine: Throwaway) -> Iterator[Throwaway]:
    """The same VM with its NVMe disk mounted."""
    with loop_disk(tmp_path / "nvme.img") as disk:
        show_disk(machine, "nvme0n1", disk)
        passed(machine, "execute/scripts/20-nvme.sh")
        yield machine
        machine.said("umount", "/mnt/nvme")


def first_values(machine: Throwaway) -> dict[str, str]:
    """What enroot takes: of each key the first value."""
    found: dict[str, str] = {}
    for line in machine.path(CONF).read_text().splitlines():
        key, _, value = line.partition(" ")
        if key.startswith("ENROOT_"):
            found.setdefault(key, value)
    return found


def test_enroots_files_lie_on_the_nvme_disks_whatever_was_set_before(with_nvme: Throwaway) -> None:
    with_nvme.write(CONF, "ENROOT_DATA_PATH /tmp/enroot-data\nENROOT_MOUNT_HOME y\n")
    passed(with_nvme, PATHS)
    assert first_values(with_nvme) == {
        "ENROOT_RUNTIME_PATH": "/mnt/nvme/enroot/runtime/user-$(id -u)",
        "ENROOT_CACHE_PATH": "/mnt/nvme/enroot/cache/user-$(id -u)",
        "ENROOT_DATA_PATH": "/mnt/nvme/enroot/data/user-$(id -u)",
        "ENROOT_TEMP_PATH": "/mnt/nvme/enroot/temp",
        "ENROOT_MOUNT_HOME": "y",
    }


def test_a_user_can_make_folders_in_those_paths_and_cannot_take_them_away(with_nvme: Throwaway) -> None:
    passed(with_nvme, PATHS)
    user = ("setpriv", "--reuid=4321", "--regid=4321", "--clear-groups")
    for name in ("runtime", "cache", "data", "temp"):
        with_nvme.said(*user, "mkdir", f"/mnt/nvme/enroot/{name}/user-4321")
    assert with_nvme.run(*user, "rmdir", "/mnt/nvme/enroot/pyxis").returncode != 0
    assert with_nvme.run(*user, "mv", "/mnt/nvme/enroot", "/mnt/nvme/mine").returncode != 0


def test_a_second_run_writes_nothing(with_nvme: Throwaway) -> None:
    passed(with_nvme, PATHS)
    before = state(with_nvme.path(CONF))
    assert passed(with_nvme, PATHS) == ""
    assert state(with_nvme.path(CONF)) == before


def test_a_folder_that_a_user_made_in_their_place_is_refused(with_nvme: Throwaway) -> None:
    folder = with_nvme.path("/mnt/nvme/enroot")
    folder.mkdir()
    os.chown(folder, 4321, 4321)
    assert "belongs to the user" in failed(with_nvme, PATHS)


def test_without_the_disks_neither_memory_nor_the_vms_disk_is_used(machine: Throwaway) -> None:
    assert "neither the VM's disk nor memory takes its place" in failed(machine, PATHS)
    machine.said("mkdir", "/mnt/nvme")
    machine.said("mount", "-t", "tmpfs", "memory", "/mnt/nvme")
    assert "not the NVMe file system of this project" in failed(machine, PATHS)
    assert not machine.path("/mnt/nvme/enroot").exists()


def test_the_test_of_the_project_sees_the_version_and_the_paths(with_nvme: Throwaway) -> None:
    assert "not installed" in failed(with_nvme, "execute/tests/test-enroot.sh")
    passed(with_nvme, INSTALL)
    ended = script(with_nvme, "execute/tests/test-enroot.sh")
    assert ended.returncode == 1
    passed(with_nvme, PATHS)
    passed(with_nvme, "execute/tests/test-enroot.sh")


def test_the_package_names_are_those_of_dpkg(packages: dict[str, bytes], tmp_path: Path) -> None:
    for file in DEBS:
        package = tmp_path / "one.deb"
        package.write_bytes(packages[file])
        said = subprocess.run(
            ["dpkg-deb", "-f", package, "Package"], check=True, capture_output=True, text=True
        )
        assert said.stdout.strip() == file.partition("_")[0]
