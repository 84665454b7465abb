"""The demo runs the real distributor, proves the copies byte by byte, and leaves nothing running."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from azcp_kit.azurite import find_azurite
from azcp_kit.demo import describe_status
from azcp_runtime.contract import ExitCode

from tests.lab.mpi import JOB_VARIABLE, RANK_VARIABLE
from tests.lab.processes import processes_with
from tests.lab.requirements import missing
from tests.lab.waiting import wait_until

DEADLINE_S = 120
LINES = ("list", "diff", "download", "bcast", "verify", "filelist", "total")


def start_demo(work: Path, *options: str, token: str = "") -> subprocess.Popen[str]:
    work.mkdir()
    program = str(Path(sys.prefix, "bin", "azcp-kit"))
    return subprocess.Popen(
        [program, "demo", "--work", str(work), "--output", str(work.parent / "out"), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {JOB_VARIABLE: token},
    )


def run_demo(work: Path, *options: str) -> tuple[int, str, str]:
    with start_demo(work, *options) as process:
        stdout, stderr = process.communicate(timeout=DEADLINE_S)
    return process.returncode, stdout, stderr


def interrupt_and_look(work: Path, number: signal.Signals, *options: str) -> None:
    """Send the signal as soon as ranks run: every process of the demo ends, and its data is removed."""
    token = secrets.token_hex(8)

    def ranks() -> list[int]:
        return [pid for pid, environ in processes_with(JOB_VARIABLE, token) if RANK_VARIABLE in environ]

    with start_demo(work, *options, token=token) as process:
        wait_until(lambda: bool(ranks()), DEADLINE_S, "the ranks run")
        process.send_signal(number)
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 128 + number
    wait_until(lambda: not list(processes_with(JOB_VARIABLE, token)), 15, "every process is gone")
    assert list(work.iterdir()) == []


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a b%2F#+ü").write_bytes(b"0" * 100_001)
    (folder / "large").write_bytes(os.urandom(5_000_001))
    (folder / "empty").write_bytes(b"")
    return folder


@pytest.mark.azurite
def test_it_distributes_from_azurite_and_leaves_report_picture_and_listing(tmp_path: Path) -> None:
    if find_azurite() is None:
        missing("azurite", "Azurite is not installed: put Node.js with npm on PATH, then `make clean venv`")
    status, stdout, stderr = run_demo(tmp_path / "work", "--size", "64MiB")
    assert status == 0, stderr
    assert tuple(re.findall(r"^\[(\w+)\]", stdout, re.MULTILINE)) == LINES
    assert re.search(r"compared: every byte of \d+ files \(64\.0 MiB\) on each of 4 nodes", stderr)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["source"].endswith("/demo/")
    assert (tmp_path / "out" / "timeline.html").read_text().count('<section class="band') == 1 + 4
    assert (tmp_path / "out" / "listing.tsv").exists()
    assert list((tmp_path / "work").iterdir()) == []


def test_a_folder_of_the_users_own_is_distributed_and_left_alone(tmp_path: Path, source: Path) -> None:
    before = sorted(source.rglob("*"))
    status, stdout, stderr = run_demo(
        tmp_path / "work", "--source-dir", str(source), "--ranks", "2", "--keep"
    )
    assert status == 0, stderr
    assert stdout.startswith("[list] 3 files, 5100002 bytes")
    assert sorted(source.rglob("*")) == before
    (kept,) = (tmp_path / "work").iterdir()
    assert (kept / "nodes" / "node1" / "large").read_bytes() == (source / "large").read_bytes()


def test_a_disk_that_is_too_small_is_found_before_anything_is_made(tmp_path: Path) -> None:
    status, stdout, stderr = run_demo(tmp_path / "work", "--size", "1000TB")
    assert (status, stdout) == (ExitCode.PREFLIGHT, "")
    assert re.fullmatch(r"azcp-kit: the demo needs .* free; name another folder with --work.*\n", stderr)
    assert list((tmp_path / "work").iterdir()) == []


def test_the_distributors_own_failure_and_exit_code_come_through(tmp_path: Path, source: Path) -> None:
    (source / "link").symlink_to("deep")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "timeline.html").write_text("of an earlier run")
    status, _, stderr = run_demo(tmp_path / "work", "--source-dir", str(source))
    assert (status, stderr.count("\n")) == (ExitCode.LIST, 3), stderr
    assert "link to a folder" in stderr
    assert not (tmp_path / "out" / "timeline.html").exists()


def test_a_status_names_the_signal_that_ended_a_rank() -> None:
    assert [describe_status(status) for status in (5, 137)] == ["status 5", "status 137 (SIGKILL)"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_no_process_and_no_data(
    tmp_path: Path, source: Path, number: signal.Signals
) -> None:
    with (source / "long").open("wb") as file:
        file.truncate(2**30)
    interrupt_and_look(tmp_path / "work", number, "--source-dir", str(source))


@pytest.mark.azurite
def test_an_interrupted_demo_stops_azurite_too(tmp_path: Path) -> None:
    if find_azurite() is None:
        missing("azurite", "Azurite is not installed: put Node.js with npm on PATH, then `make clean venv`")
    interrupt_and_look(tmp_path / "work", signal.SIGINT, "--size", "64MiB")
