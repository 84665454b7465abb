"""Modules are compiled beforehand: the same bytes each time, taken without a look at the source's date."""

from __future__ import annotations

import importlib.util
import logging
import marshal
import os
import subprocess
import sys
from pathlib import Path
from types import CodeType

import pytest
from azcp_kit.payload.compiled import compile_modules
from azcp_runtime.contract import PreflightError

HERE = sys.version_info[:2]
PREFIX = "/opt/azcp"
# What makes byte code differ from run to run elsewhere: sets, shared constants, names met before.
SOURCE = """
NAMES = frozenset({"alpha", "beta", "gamma", "delta"})
def find(name):
    shared = ("alpha", 1.5, "some text that is used twice")
    def inner():
        return name in {"one", "two", "three", "four"}, shared, "some text that is used twice"
    return inner
class Thing:
    alpha = "one"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "lib/package").mkdir(parents=True)
    (folder / "lib/package/__init__.py").write_text("", encoding="ascii")
    (folder / "lib/package/module.py").write_text(SOURCE, encoding="ascii")
    return folder


def compiled(path: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(path)))


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.pyc")}


def compile_here(folder: Path) -> bool:
    return compile_modules(folder, PREFIX, Path(sys.executable), HERE)


def imported(folder: Path, expression: str) -> str:
    program = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); from package import module; print({expression})"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_two_runs_give_the_same_bytes(tree: Path) -> None:
    assert compile_here(tree)
    first = bytes_below(tree)
    assert set(first) == {
        str(compiled(path).relative_to(tree)) for path in (tree / "lib/package").glob("*.py")
    }
    for _ in range(3):
        assert compile_here(tree)
        assert bytes_below(tree) == first


def test_the_bytes_do_not_depend_on_where_the_tree_is_made_or_when(tree: Path, tmp_path: Path) -> None:
    compile_here(tree)
    first = bytes_below(tree)
    moved = tree.rename(tmp_path / "somewhere-else")
    for path in moved.rglob("*.py"):
        os.utime(path, (1, 1))
    compile_here(moved)
    assert bytes_below(moved) == first


def test_a_compiled_module_is_by_hash_and_unchecked(tree: Path) -> None:
    compile_here(tree)
    content = compiled(tree / "lib/package/module.py").read_bytes()
    assert content[:4] == importlib.util.MAGIC_NUMBER
    # PEP 552: the first bit is for a hash in place of a date, the second for checking it.
    assert int.from_bytes(content[4:8], "little") == 0b01
    assert content[8:16] == importlib.util.source_hash(SOURCE.encode())


def test_a_module_is_known_by_the_path_that_it_has_in_the_image(tree: Path) -> None:
    compile_here(tree)
    code = marshal.loads(compiled(tree / "lib/package/module.py").read_bytes()[16:])  # noqa: S302 - made above
    assert isinstance(code, CodeType)
    assert code.co_filename == "/opt/azcp/lib/package/module.py"


def test_what_was_compiled_is_imported_from_a_folder_that_cannot_be_written(tree: Path) -> None:
    compile_here(tree)
    before = bytes_below(tree)
    # Another content and date: were the source looked at, it would be compiled anew.
    source = tree / "lib/package/module.py"
    source.write_text("Thing = None\n", encoding="ascii")
    folders = [path for path in tree.rglob("*") if path.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    seen = imported(tree / "lib", "module.Thing.alpha, module.find('one')()[0]")
    for folder in folders:
        folder.chmod(0o755)
    assert seen == "one True"
    assert bytes_below(tree) == before


def test_an_older_result_is_replaced(tree: Path) -> None:
    stale = compiled(tree / "lib/package/module.py")
    stale.parent.mkdir()
    stale.write_bytes(b"stale")
    compile_here(tree)
    assert stale.read_bytes()[:4] == importlib.util.MAGIC_NUMBER


@pytest.mark.parametrize("source", ["print 'of another Python'\n", "# coding: unknown\n", "x = 1\0\n"])
def test_what_is_no_module_of_this_python_is_left_alone(tree: Path, source: str) -> None:
    (tree / "lib/package/other.py").write_text(source, encoding="ascii")
    assert compile_here(tree)
    assert not compiled(tree / "lib/package/other.py").exists()
    assert compiled(tree / "lib/package/module.py").exists()


def foreign(folder: Path) -> Path:
    """An interpreter of another architecture: executable, and nothing that this kernel knows."""
    path = folder / "python3"
    path.write_bytes(b"\x7fELF" + bytes(60))
    path.chmod(0o755)
    return path


def test_where_the_private_interpreter_cannot_run_this_one_of_its_version_compiles(
    tree: Path, tmp_path: Path
) -> None:
    compile_here(tree)
    expected = bytes_below(tree)
    for path in tree.rglob("*.pyc"):
        path.unlink()
    assert compile_modules(tree, PREFIX, foreign(tmp_path), HERE)
    assert bytes_below(tree) == expected


def test_where_no_interpreter_of_the_version_runs_nothing_is_compiled_and_that_is_said(
    tree: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert not compile_modules(tree, PREFIX, foreign(tmp_path), (3, 99))
    assert "no Python 3.99 runs here" in caplog.text
    assert bytes_below(tree) == {}


def test_an_interpreter_that_is_not_there_cannot_run(tree: Path) -> None:
    assert not compile_modules(tree, PREFIX, tree / "absent", (3, 99))


def test_a_tree_that_cannot_be_written_is_told(tree: Path) -> None:
    (tree / "lib/package/__pycache__").touch()
    with pytest.raises(PreflightError, match="cannot compile the modules: FileExistsError"):
        compile_here(tree)
