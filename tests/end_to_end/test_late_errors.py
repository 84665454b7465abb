"""What used to be found at the end of a run, or by one rank alone: told early, once, with its own code."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab.dataset import plain_data_set
from tests.lab.disks import is_root, small_ext4
from tests.lab.expectations import expect_failure, summary_of
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import DISTRIBUTE, distribute
from tests.lab.stored_blobs import StoredBlob, stored
from tests.lab.trees import assert_same, final_files

MIB: Final = 1 << 20
DATA: Final = plain_data_set(10, 5000, MIB + 1)
RACES: Final = 5
ARCHIVED: Final = 7000


@pytest.mark.parametrize("ranks", [None, 2])
@pytest.mark.parametrize(
    "options",
    [
        ["--report={missing}/report.json"],
        ["--report={folder}"],
        ["--save-filelist={missing}/files.tsv"],
        ["--save-filelist={folder}"],
        ["--compare=filelist", "--filelist={missing}/files.tsv"],
    ],
    ids=lambda options: options[-1],
)
def test_a_file_that_the_run_needs_in_the_end_is_tried_before_the_account_is_asked(
    dest: Path, tmp_path: Path, options: list[str], ranks: int | None
) -> None:
    places = {"missing": tmp_path / "missing", "folder": tmp_path}
    filled = [option.format(**places) for option in options]
    with FaultAccount(stored(DATA)) as account:
        outcome = distribute(account.url(), dest, *filled, ranks=ranks, nodes=ranks)
        assert account.exchanges() == []
    path = filled[-1].partition("=")[2]
    expect_failure(outcome, ExitCode.USAGE, path)
    assert final_files(dest) == []


def test_a_report_of_an_earlier_run_outlives_a_command_that_is_wrong(dest: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text("earlier")
    with FaultAccount(stored(DATA)) as account:
        distribute(account.url(), dest, f"--report={report}", "--download-ranks=3").expect(ExitCode.USAGE)
    assert report.read_text() == "earlier"


@pytest.mark.parametrize("ranks", [None, 2])
def test_more_download_ranks_than_ranks_are_refused_before_the_account_is_asked(
    dest: Path, ranks: int | None
) -> None:
    with FaultAccount(stored(DATA)) as account:
        outcome = distribute(account.url(), dest, "--download-ranks=3", ranks=ranks, nodes=ranks)
        assert account.exchanges() == []
    expect_failure(outcome, ExitCode.USAGE, "--download-ranks")


@pytest.mark.skipif(not is_root(), reason="needs root to mount a small file system")
@pytest.mark.parametrize("options", [[], ["--no-bcast-direct"], ["--compare=size"]], ids=str)
@pytest.mark.parametrize("ranks", [None, 2])
def test_a_destination_of_an_earlier_run_that_became_read_only_is_told_in_one_line(
    tmp_path: Path, options: list[str], ranks: int | None
) -> None:
    with small_ext4(tmp_path, 24 * MIB) as disk, FaultAccount(stored(DATA)) as account:
        distribute(account.url(), disk, ranks=ranks).expect(ExitCode.DONE)
        before = len(account.reads())
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        outcome = distribute(account.url(), disk, *options, ranks=ranks)
        assert len(account.reads()) == before
        assert_same(disk, DATA.manifest)
    expect_failure(outcome, ExitCode.PREFLIGHT, str(disk), "Read-only")


def test_a_wrong_option_is_told_once_each_time(dest: Path) -> None:
    for _ in range(RACES):
        outcome = distribute(str(dest), dest, "--max-bandwith=1GiB", ranks=8)
        expect_failure(outcome, ExitCode.USAGE, "did you mean --max-bandwidth?")
        assert outcome.stderr.count("azcp-distribute: ") == 1, outcome.stderr


def test_what_is_wrong_for_one_rank_alone_is_told_by_that_rank(dest: Path) -> None:
    with FaultAccount(stored(DATA)) as account:
        wrong = [":", "-n", "1", str(DISTRIBUTE), account.url(), str(dest), "--verifi"]
        outcome = distribute(account.url(), dest, *wrong, ranks=1, nodes=2)
    expect_failure(outcome, ExitCode.USAGE, "did you mean --verify?")


@pytest.mark.parametrize("nodes", [2, 6])
def test_verify_tells_which_node_differs_each_time(dest: Path, nodes: int) -> None:
    with FaultAccount(stored(DATA)) as account:
        distribute(account.url(), dest, ranks=nodes, nodes=nodes).expect(ExitCode.DONE)
        flip_a_byte(dest / "node1" / "b2")
        for _ in range(RACES):
            outcome = distribute(account.url(), dest, "--compare=size", "--verify", ranks=nodes, nodes=nodes)
            expect_failure(outcome, ExitCode.VERIFY, "b2")
            told = outcome.stderr.partition("b2")[2].partition("\n")[0]
            assert re.search(rf"\bnode ?1\b|\b{re.escape(socket.gethostname())}\b", told), outcome.stderr
            verified = [line for line in outcome.stdout.splitlines() if line.startswith("[verify] ")]
            assert len(verified) == 1, outcome.text
            assert "1 mismatch" in verified[0]


def test_many_archived_blobs_are_left_out_where_that_is_asked_for(dest: Path) -> None:
    frozen = StoredBlob(b"ice", tier="Archive")
    blobs = stored(DATA) | {f"cold/{number}": frozen for number in range(ARCHIVED)}
    with FaultAccount(blobs) as account:
        outcome = distribute(account.url(), dest, "--skip-archived", ranks=2, nodes=2)
        assert {exchange.request.name for exchange in account.reads()} == set(DATA.manifest)
    assert summary_of(outcome).files == len(DATA.blobs)
    for node in range(2):
        assert_same(dest / f"node{node}", DATA.manifest)


def flip_a_byte(path: Path) -> None:
    """Damage that --compare=size does not see."""
    with path.open("r+b") as stream:
        stream.seek(path.stat().st_size // 2)
        byte = stream.read(1)
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte[0] ^ 1]))
