"""The updater of the pins changes digests and addresses, and leaves every other line as it was."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from azcp_kit.payload.pins import PINS
from azcp_kit.payload.update_pins import update, with_digests, with_entry
from azcp_runtime.contract import DownloadError, ExitCode, UsageError

from tests.lab.file_server import FileServer

OLD, NEW = "0" * 64, hashlib.sha256(b"new").hexdigest()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with FileServer({path: path.encode() for path in ("/py-amd", "/py-arm", "/mpi-1", "/mpi-2")}) as running:
        yield running


def pins(server: FileServer) -> str:
    return f"""# The first comment.

# Of the interpreter.
[[python]]
version = "3.13.1"
arch = "amd64"
url = "{server.url("/py-amd")}"
sha256 = "{OLD}"

[[python]]
version = "3.13.1"
arch = "arm64"
url = "{server.url("/py-arm")}"
sha256 = "{OLD}"

# Of the MPI. The first is the default.
[[openmpi]]
version = "4.1.6"
url = "{server.url("/mpi-1")}"
sha256 = "{OLD}"
# The last comment.
"""


@pytest.fixture
def file(server: FileServer, tmp_path: Path) -> Path:
    path = tmp_path / "pins.toml"
    path.write_text(pins(server), encoding="utf-8")
    return path


def digest(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()


def test_every_digest_is_written_anew_and_every_other_line_stays(
    server: FileServer, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    update(file, [])
    before, after = pins(server).splitlines(), file.read_text(encoding="utf-8").splitlines()
    changed = [line for line, was in zip(after, before, strict=True) if line != was]
    assert changed == [f'sha256 = "{digest(path)}"' for path in ("/py-amd", "/py-arm", "/mpi-1")]
    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"python 3.13.1 sha256 {digest('/py-amd')} (before: {OLD})"
    update(file, [])
    assert capsys.readouterr().out.splitlines()[0].endswith("(as before)")


def test_a_new_version_goes_behind_the_others_and_is_the_only_one_downloaded(
    server: FileServer, file: Path
) -> None:
    update(file, [f"openmpi=4.1.9={server.url('/mpi-2')}"])
    assert server.asked == ["/mpi-2"]
    expected = pins(server).replace(
        "# The last comment.\n",
        f'\n[[openmpi]]\nversion = "4.1.9"\nurl = "{server.url("/mpi-2")}"\nsha256 = "{digest("/mpi-2")}"\n'
        "# The last comment.\n",
    )
    assert file.read_text(encoding="utf-8") == expected


def test_a_new_version_for_an_architecture_keeps_the_comment_of_what_follows(
    server: FileServer, file: Path
) -> None:
    update(file, [f"python/arm64=3.14.0={server.url('/mpi-2')}"])
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["python"]
    assert [(row["version"], row["arch"]) for row in rows] == [
        ("3.13.1", "amd64"),
        ("3.13.1", "arm64"),
        ("3.14.0", "arm64"),
    ]
    assert "\n\n# Of the MPI. The first is the default.\n[[openmpi]]\n" in file.read_text(encoding="utf-8")


def test_a_version_that_is_there_gets_another_address(server: FileServer, file: Path) -> None:
    update(file, [f"openmpi=4.1.6={server.url('/mpi-2')}", f"python/arm64=3.13.1={server.url('/mpi-1')}"])
    expected = pins(server).replace(server.url("/mpi-1"), server.url("/mpi-2"))
    expected = expected.replace(server.url("/py-arm"), server.url("/mpi-1"))
    found = {server.url(path): digest(path) for path in ("/mpi-1", "/mpi-2")}
    assert file.read_text(encoding="utf-8") == with_digests(expected, found)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("openmpi", "write NAME=VERSION=URL"),
        ("openmpi=4.1.9", "write NAME=VERSION=URL"),
        ("openmpi=4.1.9=file:///x", "write NAME=VERSION=URL"),
        ('openmpi=4.1.9"=http://x', "write NAME=VERSION=URL"),
        ('openmpi=4.1.9=http://x"\nevil = "1', "write NAME=VERSION=URL"),
        ("hwloc=2.0=http://x", "there are no pins of hwloc"),
    ],
)
def test_what_is_no_entry_is_refused(entry: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        with_entry(PINS.read_text(encoding="utf-8"), entry)


def test_a_download_that_fails_leaves_the_file_as_it_was(server: FileServer, file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(DownloadError, match="openmpi 4.1.9 cannot be downloaded"):
        update(file, [f"openmpi=4.1.9={server.url('/absent')}"])
    assert file.read_bytes() == before


def test_the_real_pins_stay_as_they_are_with_their_own_digests() -> None:
    text = PINS.read_text(encoding="utf-8")
    rows = [row for rows in tomllib.loads(text).values() for row in rows]
    assert with_digests(text, {row["url"]: row["sha256"] for row in rows}) == text
    assert with_digests(text, {rows[-1]["url"]: NEW}).count(NEW) == 1


def test_the_command_tells_what_is_wrong_in_one_line(file: Path) -> None:
    argv = [sys.executable, "-m", "azcp_kit.payload.update_pins", "--file", str(file), "--set", "openmpi"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert done.stderr.startswith("update_pins: --set openmpi: write NAME=VERSION=URL")
    assert done.stderr.count("\n") == 1
