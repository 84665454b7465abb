"""The tree is laid out the same from any layout of the parts and under any umask."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from azcp_kit.payload.tree import EPOCH_S, place_python, prune, prune_mpi, prune_packages, settle
from azcp_runtime.contract import UsageError
from azcp_runtime.contract import image as paths

Content = str | Path
LIBRARY = {"lib/python3.13/os.py": "", "lib/python3.13/site-packages/pip/__init__.py": ""}
STANDALONE: dict[str, Content] = {
    "python/bin/python3": Path("python3.13"),
    "python/bin/python3.13": "the interpreter",
    **{f"python/{path}": body for path, body in LIBRARY.items()},
}
LAYOUTS: dict[str, dict[str, Content]] = {
    "standalone": STANDALONE,
    "at the top": {path.removeprefix("python/"): body for path, body in STANDALONE.items()},
    "with its build": {path.replace("python/", "python/install/"): body for path, body in STANDALONE.items()},
    "a file and a link to it": {
        **STANDALONE,
        "python/bin/python3": "the interpreter",
        "python/bin/python3.13": Path("python3"),
    },
    "under one name": {
        **{path: body for path, body in STANDALONE.items() if not path.endswith("python3.13")},
        "python/bin/python3": "the interpreter",
    },
    "out of bin": {
        **STANDALONE,
        "python/bin/python3.13": Path("../libexec/python"),
        "python/libexec/python": "the interpreter",
    },
    "with another one in it": {
        **STANDALONE,
        "python/a/deep/bin/python3": "another one",
        "python/a/deep/lib/python3.9/os.py": "",
    },
    "with a thread library beside it": {**STANDALONE, "python/lib/python3.13t/os.py": ""},
}


@pytest.fixture(params=[0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def put(folder: Path, content: Mapping[str, Content]) -> Path:
    for name, body in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(body, Path):
            path.symlink_to(body)
        else:
            path.write_text(body, encoding="ascii")
    return folder


def names_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_interpreter_lies_at_one_place_whatever_its_archive(tmp_path: Path, layout: str) -> None:
    target = tmp_path / "opt/azcp/python"
    target.parent.mkdir(parents=True)
    assert place_python(put(tmp_path / "unpacked", LAYOUTS[layout]), target) == (3, 13)
    assert {path.name for path in (target / "bin").iterdir()} == {"python3", "python3.13"}
    assert (target / "bin/python3").readlink() == Path("python3.13")
    assert (target / "bin/python3.13").read_text(encoding="ascii") == "the interpreter"
    assert not (target / "bin/python3.13").is_symlink()


def test_the_interpreters_own_packages_give_way_to_a_path_to_the_runtimes(tmp_path: Path) -> None:
    target = tmp_path / paths.PYTHON.lstrip("/")
    root = target.parents[1]
    root.parent.mkdir(parents=True)
    place_python(put(tmp_path / "unpacked", STANDALONE), root)
    site = root / "lib/python3.13/site-packages"
    assert names_below(site) == {"azcp.pth"}
    lib = (site / (site / "azcp.pth").read_text(encoding="ascii").strip()).resolve()
    assert lib == tmp_path / paths.LIB.lstrip("/")


@pytest.mark.parametrize(
    "content",
    [
        {"readme": ""},
        {"python/bin/python3": ""},
        {"python/bin/python3": Path("absent"), "python/lib/python3.13/os.py": ""},
        {"python/bin/python3": "", "python/lib/python3.13": "a file"},
        {"python/bin/python3": "", "python/lib/python3.x/os.py": ""},
    ],
)
def test_an_archive_without_an_interpreter_is_refused(tmp_path: Path, content: dict[str, Content]) -> None:
    with pytest.raises(UsageError, match="no bin/python3 with its lib"):
        place_python(put(tmp_path / "unpacked", content), tmp_path / "python")


def test_what_the_runtime_never_imports_is_taken_from_the_interpreter(tmp_path: Path) -> None:
    unused: dict[str, Content] = {
        "python/include/Python.h": "",
        "python/lib/libtcl9.0.so": "",
        "python/lib/tcl9/init.tcl": "",
        "python/lib/libpython3.13.a": "",
        "python/lib/python3.13/idlelib/a.py": "",
        "python/lib/python3.13/lib-dynload/_tkinter.cpython-313.so": "",
        "python/lib/python3.13/test/a.py": "",
        "python/lib/python3.13/config-3.13-x86_64-linux-gnu/Makefile": "",
    }
    used: dict[str, Content] = {
        "python/lib/libpython3.13.so.1.0": "",
        "python/lib/python3.13/lib-dynload/_ssl.cpython-313.so": "",
        "python/lib/python3.13/unittest/mock.py": "",
    }
    target = tmp_path / "python"
    place_python(put(tmp_path / "unpacked", {**STANDALONE, **unused, **used}), target)
    kept = {f"python/{name}" for name in names_below(target)}
    assert set(used) <= kept
    assert not set(unused) & kept


def test_what_only_compilers_read_is_taken_from_the_mpi(tmp_path: Path) -> None:
    used: dict[str, Content] = {
        "bin/mpirun": "",
        "bin/orted": "",
        "bin/ompi_info": "",
        "lib/libmpi.so.40": "",
        "lib/openmpi/mca_pml_ucx.so": "",
        "share/openmpi/help-mpirun.txt": "",
    }
    unused: dict[str, Content] = {
        "bin/mpicc": "",
        "bin/mpifort": "",
        "bin/mpiCC": "",
        "bin/oshrun": "",
        "bin/ompi-server": "",
        "include/mpi.h": "",
        "lib/libmpi.so": Path("libmpi.so.40"),
        "lib/libmpi.la": "",
        "lib/openmpi/mca_pml_ucx.la": "",
        "share/man/man1/mpirun.1": "",
        "share/openmpi/mpicc-wrapper-data.txt": "",
    }
    prune_mpi(put(tmp_path, {**used, **unused}))
    assert names_below(tmp_path) == set(used)


def test_headers_tests_and_unused_clients_are_taken_from_the_packages(tmp_path: Path) -> None:
    used = {
        "azure/core/pipeline/__init__.py": "",
        "mpi4py/MPI.openmpi.cpython-313.so": "",
        "pygments/lexers/__init__.py": "",
        "pygments/lexers/_mapping.py": "",
        "rich/console.py": "",
    }
    unused = {
        "azure/identity/aio/__init__.py": "",
        "azure/identity/aio/_credentials/aio/deep.py": "",
        "bin/normalizer": "",
        "mpi4py/MPI.mpich.cpython-313.so": "",
        "mpi4py/include/mpi4py.h": "",
        "pygments/lexers/python.py": "",
        "rich/console.pyi": "",
        "yarl/tests/test_url.py": "",
    }
    prune_packages(put(tmp_path, {**used, **unused}))
    assert names_below(tmp_path) == set(used)


def test_a_link_to_a_folder_is_removed_and_what_it_leads_to_is_not(tmp_path: Path) -> None:
    put(tmp_path, {"kept/file": "", "tree/link": Path("../kept"), "tree/other": ""})
    prune(tmp_path / "tree", ("link", "absent", "absent/**/*.h"))
    assert names_below(tmp_path) == {"kept/file", "tree/other"}


def test_nothing_is_removed_through_a_link_out_of_the_folder(tmp_path: Path) -> None:
    put(tmp_path, {"outside/_test.so": "", "tree/lib-dynload": Path("../outside")})
    prune(tmp_path / "tree", ("lib-dynload/_test*", "**/_test*"))
    assert names_below(tmp_path) >= {"outside/_test.so"}


def test_every_entry_gets_one_date_and_a_mode_that_anybody_may_read(tmp_path: Path, umask: int) -> None:
    folder = put(tmp_path / "tree", {"deep/file": "", "deep/program": "", "link": Path("deep")})
    (folder / "deep/program").chmod(0o4710)
    (folder / "deep/file").chmod(0o666 & ~umask)
    settle(folder)
    found = {
        str(path.relative_to(tmp_path)): (oct(path.lstat().st_mode & 0o7777), path.lstat().st_mtime)
        for path in [folder, *folder.rglob("*")]
    }
    assert found == {
        "tree": ("0o755", EPOCH_S),
        "tree/deep": ("0o755", EPOCH_S),
        "tree/deep/file": ("0o644", EPOCH_S),
        "tree/deep/program": ("0o755", EPOCH_S),
        "tree/link": ("0o777", EPOCH_S),
    }


def test_a_link_that_leads_nowhere_or_outside_is_settled_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.touch(0o600)
    before = outside.stat()
    folder = put(tmp_path / "tree", {"nowhere": Path("absent"), "outside": outside})
    settle(folder)
    assert (outside.stat().st_mode, outside.stat().st_mtime) == (before.st_mode, before.st_mtime)
