"""What is in an image is told from its files: distribution, C library, tools, Pythons, ssh, verbs, GPU."""

from __future__ import annotations

import pytest
from azcp_kit.inspect.detect_system import parse_os_release
from azcp_kit.inspect.facts import LibcKind, PackageKind, Python

from tests.kit.image_tree import Content, Link, elf, facts_of, glibc, ld_cache, musl

UBUNTU = """\
PRETTY_NAME="Ubuntu 24.04.3 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
"""
ROCKY = 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n'
UBI = 'NAME="Red Hat Enterprise Linux"\nID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.6"\n'
AZURE_LINUX = 'NAME="Microsoft Azure Linux"\nID=azurelinux\nVERSION_ID="3.0"\n'
SLES = 'NAME="SLES"\nID="sles"\nID_LIKE="suse"\nVERSION_ID="15.6"\n'
WOLFI = "ID=wolfi\nNAME='Wolfi'\nVERSION_ID='20230201'\n"
ALPINE = 'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.22.1\n'
BOTH_APK: dict[str, Content] = {"/sbin/apk": b"", "/bin/busybox": elf(), "/bin/sh": Link("/bin/busybox")}

DISTRIBUTIONS: dict[str, dict[str, Content]] = {
    "ubuntu": {
        "/etc/os-release": Link("../usr/lib/os-release"),
        "/usr/lib/os-release": UBUNTU,
        "/usr/bin/apt-get": elf(),
        "/etc/apt/sources.list.d/ubuntu.sources": "Types: deb",
        "/etc/apt/sources.list.d/cuda.list": "deb https://example.org/ /",
        "/etc/apt/sources.list.d/cuda.list.save": "",
        **glibc("2.39", "/usr/lib/x86_64-linux-gnu"),
    },
    "rocky": {
        "/etc/os-release": ROCKY,
        "/usr/bin/dnf": Link("dnf-3"),
        "/usr/bin/dnf-3": b"",
        "/usr/bin/yum": Link("dnf-3"),
        "/etc/yum.repos.d/rocky.repo": "[baseos]",
        **glibc("2.34", "/usr/lib64"),
    },
    "ubi-minimal": {"/etc/os-release": UBI, "/usr/bin/microdnf": elf(), **glibc("2.34", "/usr/lib64")},
    "azurelinux": {"/etc/os-release": AZURE_LINUX, "/usr/bin/tdnf": elf(), **glibc("2.38", "/usr/lib")},
    "sles": {"/etc/os-release": SLES, "/usr/bin/zypper": elf(), **glibc("2.38", "/lib64")},
    "wolfi": {"/etc/os-release": WOLFI, **BOTH_APK, **glibc("2.42", "/usr/lib")},
    "alpine": {"/etc/os-release": ALPINE, **BOTH_APK, **musl()},
}


@pytest.mark.parametrize(
    ("name", "system", "packages", "libc", "version"),
    [
        ("ubuntu", "ubuntu", PackageKind.APT, LibcKind.GLIBC, "2.39"),
        ("rocky", "rocky", PackageKind.DNF, LibcKind.GLIBC, "2.34"),
        ("ubi-minimal", "rhel", PackageKind.MICRODNF, LibcKind.GLIBC, "2.34"),
        ("azurelinux", "azurelinux", PackageKind.TDNF, LibcKind.GLIBC, "2.38"),
        ("sles", "sles", PackageKind.ZYPPER, LibcKind.GLIBC, "2.38"),
        ("wolfi", "wolfi", PackageKind.APK, LibcKind.GLIBC, "2.42"),
        ("alpine", "alpine", PackageKind.APK, LibcKind.MUSL, "1.2.5"),
    ],
)
def test_a_distribution_is_known_by_its_files(
    name: str, system: str, packages: PackageKind, libc: LibcKind, version: str
) -> None:
    facts = facts_of(DISTRIBUTIONS[name])
    assert (facts.system.id, facts.packages.kind) == (system, packages)
    assert (facts.libc.kind, facts.libc.version, facts.libc.arch) == (libc, version, "amd64")


def test_the_codename_and_what_it_is_like_come_from_os_release() -> None:
    system = facts_of(DISTRIBUTIONS["ubuntu"]).system
    assert (system.codename, system.like, system.version) == ("noble", ("debian",), "24.04")
    assert system.name == "Ubuntu 24.04.3 LTS"


def test_all_files_that_name_repositories_are_listed() -> None:
    sources = facts_of(DISTRIBUTIONS["ubuntu"]).packages.sources
    assert sources == ("/etc/apt/sources.list.d/cuda.list", "/etc/apt/sources.list.d/ubuntu.sources")


def test_package_lists_of_apt_are_seen() -> None:
    lists = {"/var/lib/apt/lists/deb.example_dists_noble_InRelease": b""}
    assert not facts_of(DISTRIBUTIONS["ubuntu"]).packages.has_lists
    assert facts_of(DISTRIBUTIONS["ubuntu"] | lists).packages.has_lists


def test_an_os_release_of_nonsense_gives_nothing() -> None:
    assert parse_os_release("=\n# ID=x\nid=y\nID\n\0\nNAME='a' ; rm\n") == {"NAME": "a' ; rm"}


def test_an_image_of_no_files_has_nothing() -> None:
    facts = facts_of({})
    assert (facts.libc.kind, facts.libc.arch, facts.packages.kind) == (LibcKind.NONE, "", PackageKind.NONE)
    assert (facts.shells, facts.pythons, facts.mpis, facts.system.name) == ((), (), (), "")


def test_an_image_without_a_shell_still_tells_its_libc() -> None:
    facts = facts_of(glibc("2.36"))
    assert (facts.shells, facts.libc.version) == ((), "2.36")


def test_a_shell_that_is_a_dangling_link_is_none() -> None:
    assert facts_of({"/bin/sh": Link("busybox")}).shells == ()
    assert facts_of({"/bin/sh": Link("busybox"), "/bin/busybox": elf()}).shells == ("/bin/sh",)


def test_a_musl_loader_for_cross_compiling_makes_no_musl_image() -> None:
    assert facts_of(glibc("2.36") | musl()).libc.kind is LibcKind.GLIBC


def test_a_shim_that_bears_the_name_of_glibcs_loader_makes_no_glibc_image() -> None:
    shim: dict[str, Content] = {
        "/lib64/ld-linux-x86-64.so.2": Link("/lib/libgcompat.so.0"),
        "/lib/libgcompat.so.0": elf(),
        "/lib/libc.so.6": Link("libgcompat.so.0"),
    }
    assert facts_of(musl() | shim).libc.kind is LibcKind.MUSL


def test_a_32_bit_libc_beside_the_other_is_passed_over() -> None:
    old = {"/lib/libc.so.6": elf("386") + b"GNU C Library stable release version 2.12"}
    assert facts_of(old | glibc("2.34", "/usr/lib64")).libc.version == "2.34"


def test_the_loaders_cache_leads_to_a_libc_in_a_folder_of_its_own() -> None:
    moved = glibc("2.37", "/opt/lib")
    cache = {"/etc/ld.so.cache": ld_cache({"libc.so.6": "/opt/lib/libc.so.6"})}
    assert facts_of(moved).libc.kind is LibcKind.NONE
    assert facts_of(moved | cache).libc.path == "/opt/lib/libc.so.6"


def test_a_program_tells_the_architecture_where_there_is_no_libc() -> None:
    assert facts_of({"/app": elf("arm64")}, {"Entrypoint": ["/app"]}).libc.arch == "arm64"


def test_pythons_are_found_once_each_and_the_first_on_path_is_marked() -> None:
    files: dict[str, Content] = {
        "/opt/venv/pyvenv.cfg": "home = /usr/bin\nversion = 3.12.3\n",
        "/opt/venv/bin/python3": Link("/usr/bin/python3.12"),
        "/usr/bin/python3": Link("python3.12"),
        "/usr/bin/python3.12": elf(),
        "/opt/conda/bin/python3": Link("python3.11"),
        "/opt/conda/bin/python": Link("python3.11"),
        "/opt/conda/bin/python3.11": elf(),
        "/usr/libexec/platform-python": Link("platform-python3.6"),
        "/usr/libexec/platform-python3.6": elf(),
    }
    found = facts_of(files, {"Env": ["PATH=/opt/venv/bin:/usr/bin"]}).pythons
    assert found[0] == Python("/opt/venv/bin/python3", "/usr/bin/python3.12", "3.12", True, True)
    assert [(python.path, python.version, python.is_first_on_path) for python in found[1:]] == [
        ("/usr/bin/python3", "3.12", False),
        ("/opt/conda/bin/python3", "3.11", False),
        ("/usr/libexec/platform-python", "3.6", False),
    ]


def test_the_ssh_servers_version_is_its_own() -> None:
    sshd = b"OpenSSH_2*,OpenSSH_3.0*\0OpenSSH_9.2\0OpenSSH_9.2p1 Debian-2+deb12u6\0"
    ssh = facts_of({"/usr/sbin/sshd": sshd, "/usr/bin/ssh": b""}).ssh
    assert (ssh.server, ssh.version, ssh.client) == ("/usr/sbin/sshd", "9.2p1", "/usr/bin/ssh")


def test_verbs_have_the_release_of_their_file_name_and_the_providers_beside_it() -> None:
    folder = "/usr/lib/x86_64-linux-gnu"
    files: dict[str, Content] = {
        f"{folder}/libibverbs.so.1": Link("libibverbs.so.1.14.44.0"),
        f"{folder}/libibverbs.so.1.14.44.0": elf(),
        f"{folder}/libibverbs/libmlx5-rdmav34.so": Link("../libmlx5.so.1"),
        f"{folder}/libibverbs/librxe-rdmav34.so": elf(),
        f"{folder}/librdmacm.so.1": elf(),
        "/usr/bin/ofed_info": "echo MLNX_OFED_LINUX-23.10-0.5.5.0:\n",
    }
    verbs = facts_of(files).verbs
    assert (verbs.version, verbs.providers) == ("44.0", ("mlx5", "rxe"))
    assert (verbs.rdmacm, verbs.mofed) == (f"{folder}/librdmacm.so.1", "MLNX_OFED_LINUX-23.10-0.5.5.0")


def test_gpu_libraries_are_found_by_file_before_the_environment() -> None:
    files: dict[str, Content] = {
        "/usr/local/cuda": Link("/usr/local/cuda-12.6"),
        "/usr/local/cuda-12.6/version.json": '{"cuda": {"version": "12.6.1"}}',
        "/usr/lib/x86_64-linux-gnu/libnccl.so.2": Link("libnccl.so.2.22.3"),
        "/usr/lib/x86_64-linux-gnu/libnccl.so.2.22.3": elf(),
    }
    gpu = facts_of(files, {"Env": ["CUDA_VERSION=11.0"]}).gpu
    assert (gpu.cuda, gpu.rocm, gpu.nccl) == ("12.6.1", "", "2.22.3")
    assert facts_of({}, {"Env": ["CUDA_VERSION=12.4.0"]}).gpu.cuda == "12.4.0"
    assert facts_of({"/opt/rocm/.info/version": "6.2.0-66\n"}).gpu.rocm == "6.2.0"


@pytest.mark.parametrize("text", ["[", "[]", '{"cuda": 1}', "[" * 100_000])
def test_a_version_file_of_nonsense_is_no_cuda(text: str) -> None:
    assert facts_of({"/usr/local/cuda/version.json": text}).gpu.cuda == ""


def test_an_injected_image_is_known_by_its_manifest() -> None:
    assert not facts_of({}).is_injected
    assert facts_of({"/opt/azcp/manifest.json": "{}"}).is_injected
