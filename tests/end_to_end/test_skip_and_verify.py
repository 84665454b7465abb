"""Second runs: what is skipped, what a peer sends, and what --verify finds."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_failure, expect_trees, summary_of
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import Outcome, distribute
from tests.lab.stored_blobs import StoredBlob, stored
from tests.lab.trees import assert_same, final_files

if TYPE_CHECKING:
    from pathlib import Path

MIB: Final = 1 << 20
NODES: Final = 3
DATA: Final = plain_data_set(0, 10, 5000, MIB + 1, 3 * MIB)


def run(account: FaultAccount, dest: Path, *options: str) -> Outcome:
    return distribute(account.url(), dest, *options, ranks=NODES, nodes=NODES)


def check_trees(dest: Path) -> None:
    expect_trees(dest, DATA, NODES)


def changed(blob: StoredBlob, content: bytes) -> StoredBlob:
    return replace(
        blob,
        content=content,
        content_md5=None,
        etag="0x8DCCCCCCCCCCCCC",
        last_modified="Tue, 02 Jan 2024 00:00:00 GMT",
    )


@pytest.fixture
def account() -> FaultAccount:
    return FaultAccount(stored(DATA))


def test_compare_size_skips_what_is_there_and_reads_nothing(account: FaultAccount, dest: Path) -> None:
    with account:
        assert summary_of(run(account, dest, "--compare=size")).azure == len(DATA.blobs)
        first = len(account.reads())
        again = summary_of(run(account, dest, "--compare=size"))
        assert len(account.reads()) == first
    assert (again.to_transfer, again.skipped, again.downloaded_bytes) == (0, len(DATA.blobs), 0)
    check_trees(dest)


def test_compare_size_fetches_what_has_another_size(account: FaultAccount, dest: Path) -> None:
    with account:
        summary_of(run(account, dest))
        for node in range(NODES):
            (dest / f"node{node}" / "b2").write_bytes(b"short")
        again = summary_of(run(account, dest, "--compare=size"))
    assert (again.azure, again.skipped) == (1, len(DATA.blobs) - 1)
    check_trees(dest)


def test_compare_none_fetches_everything_again(account: FaultAccount, dest: Path) -> None:
    with account:
        summary_of(run(account, dest))
        for node in range(NODES):
            (dest / f"node{node}" / "b3").write_bytes(bytes(MIB + 1))
        again = summary_of(run(account, dest, "--compare=none"))
    assert (again.azure, again.skipped) == (len(DATA.blobs), 0)
    check_trees(dest)


def test_a_saved_filelist_has_a_line_for_each_blob_with_size_and_date(
    account: FaultAccount, dest: Path, tmp_path: Path
) -> None:
    filelist = tmp_path / "files.tsv"
    with account:
        summary = summary_of(run(account, dest, f"--save-filelist={filelist}"))
    assert summary.filelist_entries == len(DATA.blobs)
    lines = [line for line in filelist.read_text().splitlines() if not line.startswith("#")]
    rows = sorted(line.split("\t")[:3] for line in lines)
    assert rows == [
        [blob.name, str(blob.content.size), "Mon, 01 Jan 2024 00:00:00 GMT"] for blob in DATA.blobs
    ]


def test_compare_filelist_skips_what_is_unchanged_and_fetches_what_has_another_date(
    account: FaultAccount, dest: Path, tmp_path: Path
) -> None:
    filelist = tmp_path / "files.tsv"
    options = ("--compare=filelist", f"--filelist={filelist}")
    with account:
        summary_of(run(account, dest, f"--save-filelist={filelist}"))
        assert summary_of(run(account, dest, *options)).skipped == len(DATA.blobs)
        account.blobs["b2"] = changed(account.blobs["b2"], bytes(5000))
        again = summary_of(run(account, dest, *options))
    assert (again.azure, again.skipped) == (1, len(DATA.blobs) - 1)
    assert (dest / "node2" / "b2").read_bytes() == bytes(5000)


def test_compare_filelist_fetches_what_is_on_the_list_but_not_on_the_disk(
    account: FaultAccount, dest: Path, tmp_path: Path
) -> None:
    filelist = tmp_path / "files.tsv"
    with account:
        summary_of(run(account, dest, f"--save-filelist={filelist}"))
        for node in range(NODES):
            (dest / f"node{node}" / "b4").unlink()
        again = summary_of(run(account, dest, "--compare=filelist", f"--filelist={filelist}"))
    assert (again.azure, again.skipped) == (1, len(DATA.blobs) - 1)
    check_trees(dest)


def test_a_filelist_that_is_not_there_is_named(account: FaultAccount, dest: Path) -> None:
    with account:
        outcome = run(account, dest, "--compare=filelist", "--filelist=/nowhere/files.tsv")
        assert account.reads() == []
    assert outcome.code in {ExitCode.USAGE, ExitCode.LIST, ExitCode.PLAN}
    assert "/nowhere/files.tsv" in outcome.stderr


def test_a_file_that_one_node_holds_is_sent_by_it_and_not_read_again(
    account: FaultAccount, dest: Path
) -> None:
    with account:
        summary_of(run(account, dest))
        before = {name: len(account.reads(name)) for name in DATA.manifest}
        for node in (0, 2):
            (dest / f"node{node}" / "b3").unlink()
            (dest / f"node{node}" / "b4").unlink()
        (dest / "node1" / "b2").unlink()
        again = summary_of(run(account, dest, "--compare=size"))
        assert {name: len(account.reads(name)) for name in DATA.manifest} == before
    assert (again.peer, again.azure, again.skipped) == (3, 0, len(DATA.blobs) - 3)
    assert again.downloaded_bytes == 0
    check_trees(dest)


def test_a_node_that_comes_late_gets_everything_from_its_peers(account: FaultAccount, dest: Path) -> None:
    with account:
        distribute(account.url(), dest, ranks=2, nodes=2).expect(ExitCode.DONE)
        before = len(account.reads())
        late = summary_of(run(account, dest, "--compare=size"))
        assert len(account.reads()) == before
    assert (late.peer, late.azure) == (len(DATA.blobs), 0)
    check_trees(dest)


def test_verify_counts_content_md5_in_three_states(dest: Path) -> None:
    blobs = stored(DATA)
    for name in ("b1", "b3"):
        blobs[name] = replace(blobs[name], content_md5=None)
    with FaultAccount(blobs) as account:
        verify = summary_of(run(account, dest, "--verify")).verify
    counts = {state: int(count) for count, state in re.findall(r"(\d+) (match|mismatch|absent)", verify)}
    assert counts == {"match": 3, "mismatch": 0, "absent": 2}


def test_without_verify_there_is_no_line_of_it(account: FaultAccount, dest: Path) -> None:
    with account:
        assert summary_of(run(account, dest)).verify == ""


@pytest.mark.parametrize("with_md5", [True, False])
def test_verify_finds_a_file_that_one_node_has_wrong(dest: Path, with_md5: bool) -> None:
    blobs = stored(DATA)
    if not with_md5:
        blobs = {name: replace(blob, content_md5=None) for name, blob in blobs.items()}
    with FaultAccount(blobs) as account:
        summary_of(run(account, dest))
        flip_a_byte(dest / "node1" / "b4")
        outcome = run(account, dest, "--compare=size", "--verify").expect(ExitCode.VERIFY)
    assert "b4" in outcome.stderr
    assert "b3" not in outcome.stderr


def test_verify_finds_a_file_that_all_nodes_have_wrong_by_its_content_md5(
    account: FaultAccount, dest: Path
) -> None:
    with account:
        summary_of(run(account, dest))
        for node in range(NODES):
            flip_a_byte(dest / f"node{node}" / "b4")
        outcome = run(account, dest, "--compare=size", "--verify").expect(ExitCode.VERIFY)
    assert "b4" in outcome.stderr
    assert "Content-MD5" in outcome.stderr


@pytest.mark.parametrize("ranks", [2, 4])
def test_what_verify_has_found_wrong_is_fetched_anew_by_the_next_run(
    account: FaultAccount, dest: Path, ranks: int
) -> None:
    def again(*options: str) -> Outcome:
        return distribute(account.url(), dest, *options, ranks=ranks, nodes=2)

    with account:
        again().expect(ExitCode.DONE)
        rotten = dest / "node1" / "b4"
        before = rotten.stat()
        flip_a_byte(rotten)
        os.utime(rotten, ns=(before.st_atime_ns, before.st_mtime_ns))
        # Nothing but a digest can tell: its size, time and inode are those of its record.
        expect_failure(again("--verify"), ExitCode.VERIFY, "b4")
        already = len(account.reads())
        again("--verify").expect(ExitCode.DONE)
    assert {exchange.request.name for exchange in account.reads()[already:]} == {"b4"}
    for node in range(2):
        assert_same(dest / f"node{node}", DATA.manifest)


def test_verify_finds_a_content_md5_that_was_wrong_from_the_start(dest: Path) -> None:
    blobs = stored(DATA)
    blobs["b2"] = replace(blobs["b2"], content_md5=b"wrong" * 3 + b"!")
    with FaultAccount(blobs) as account:
        outcome = run(account, dest, "--verify").expect(ExitCode.VERIFY)
    assert "b2" in outcome.stderr


def test_files_that_the_source_does_not_have_are_left_alone(account: FaultAccount, dest: Path) -> None:
    (dest / "node1" / "mine").mkdir(parents=True)
    (dest / "node1" / "mine" / "notes.txt").write_bytes(b"keep")
    with account:
        summary_of(run(account, dest))
    assert (dest / "node1" / "mine" / "notes.txt").read_bytes() == b"keep"
    assert final_files(dest / "node0") == sorted(DATA.manifest)


def flip_a_byte(path: Path) -> None:
    """Damage that neither size nor date shows."""
    status = path.stat()
    with path.open("r+b") as stream:
        stream.seek(status.st_size // 2)
        byte = stream.read(1)
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
