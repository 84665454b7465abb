"""A wheel of azcp-kit holds all that an installed toolkit needs to make an image, and no more."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    argv = [sys.executable, "-c", BUILD, str(folder)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(folder / done.stdout.split()[-1]) as archive:
        yield archive


def modes(wheel: zipfile.ZipFile, below: str) -> dict[str, int]:
    return {
        member.filename.removeprefix(below): member.external_attr >> 16 & 0o777
        for member in wheel.infolist()
        if member.filename.startswith(below)
    }


def test_the_templates_are_in_it_with_their_modes(wheel: zipfile.ZipFile) -> None:
    source = ROOT / "templates/image"
    expected = {
        str(path.relative_to(source)): 0o755 if path.stat().st_mode & 0o111 else 0o644
        for path in source.rglob("*")
        if path.is_file()
    }
    assert modes(wheel, "azcp_kit/templates/image/") == expected
    scripts = [name for name in expected if name.endswith(".sh") or "/bin/" in name]
    assert {expected[name] for name in scripts} == {0o755}


def test_the_pins_and_the_runtimes_lock_are_in_it(wheel: zipfile.ZipFile) -> None:
    assert (
        wheel.read("azcp_kit/payload/pins.toml") == (ROOT / "toolkit/azcp_kit/payload/pins.toml").read_bytes()
    )
    lock = (ROOT / "runtime/requirements.txt").read_bytes()
    assert wheel.read("azcp_kit/runtime-requirements.txt") == lock


def test_every_module_of_both_packages_is_in_it(wheel: zipfile.ZipFile) -> None:
    for package in ("toolkit/azcp_kit", "runtime/azcp_runtime"):
        folder = (ROOT / package).parent
        modules = {str(path.relative_to(folder)) for path in (ROOT / package).rglob("*.py")}
        assert modules <= set(wheel.namelist())


def test_nothing_else_is_in_it(wheel: zipfile.ZipFile) -> None:
    strange = re.compile(r"\.pyc$|^tests/|^bench/|\.Dockerfile$")
    assert [name for name in wheel.namelist() if strange.search(name)] == []
    assert {name.split("/")[0].split("-")[0] for name in wheel.namelist()} == {
        "azcp_kit",
        "azcp_runtime",
    }


def test_an_installed_toolkit_finds_them(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    program = (
        "from azcp_kit.payload import assemble; from azcp_kit.payload.pins import pinned;"
        "from azcp_kit.render import templates_folder; import azcp_kit;"
        "print(len(assemble._requirements()), pinned('ucx').version, templates_folder(), azcp_kit.__file__)"
    )
    argv = [sys.executable, "-c", program]
    done = subprocess.run(
        argv, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    size = len((ROOT / "runtime/requirements.txt").read_text(encoding="utf-8"))
    package = tmp_path / "azcp_kit"
    assert done.stdout.split() == [
        str(size),
        "1.15.0",
        str(package / "templates"),
        str(package / "__init__.py"),
    ]
