"""Which names of the source a run takes, and what it says of those it leaves out."""

from __future__ import annotations

from pathlib import Path

from azcp_runtime.contract import ExitCode

from tests.lab.expectations import expect_failure
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import StoredBlob
from tests.lab.trees import final_files

BLOBS = {name: StoredBlob(name.encode()) for name in ("p/a.bin", "p/b.txt", "p/x/c.bin", "p/x/d.txt")}


def test_only_names_that_were_chosen_are_read(dest: Path) -> None:
    options = ("--include", "*.bin", "--include", "x/", "--exclude", "d.*")
    with FaultAccount(BLOBS) as account:
        distribute(account.url("data/p"), dest, *options, ranks=2, nodes=2).expect(ExitCode.DONE)
        assert {exchange.request.name for exchange in account.reads()} == {"p/a.bin", "p/x/c.bin"}
    assert final_files(dest / "node1") == ["a.bin", "x/c.bin"]


def test_patterns_that_leave_nothing_end_the_run(dest: Path) -> None:
    with FaultAccount(BLOBS) as account:
        outcome = distribute(account.url("data/p"), dest, "--include", "*.safetensors")
    expect_failure(outcome, ExitCode.LIST, "none of 4 names is left by --include *.safetensors")


def test_a_folder_that_was_meant_is_written_with_a_slash(dest: Path) -> None:
    with FaultAccount(BLOBS) as account:
        outcome = distribute(account.url("data/p"), dest, "--include", "x")
    expect_failure(outcome, ExitCode.LIST, "a folder is x/")


def test_a_source_that_is_a_blob_says_what_to_write_instead(dest: Path) -> None:
    with FaultAccount(BLOBS | {"top": StoredBlob(b"top")}) as account:
        folder = account.url("data/p/x/")
        outcome = distribute(f"{folder}c.bin", dest)
        at_the_top = distribute(account.url("data/top"), dest)
        distribute(folder, dest, "--include", "c.bin").expect(ExitCode.DONE)
    expect_failure(outcome, ExitCode.LIST, "c.bin is a blob", f"its folder {folder} with --include c.bin")
    expect_failure(at_the_top, ExitCode.LIST, "data/ with --include top")


def test_a_folder_without_blobs_is_not_called_a_blob(dest: Path) -> None:
    with FaultAccount({"empty": StoredBlob(b"", metadata={"hdi_isfolder": "true"})}) as account:
        outcome = distribute(account.url("data/empty"), dest)
    expect_failure(outcome, ExitCode.LIST, "nothing lies below")


def test_archived_blobs_that_are_left_out_are_counted(dest: Path) -> None:
    blobs = BLOBS | {"p/cold": StoredBlob(b"ice", tier="Archive")}
    with FaultAccount(blobs) as account:
        outcome = distribute(account.url("data/p"), dest, "--skip-archived").expect(ExitCode.DONE)
    assert "1 archived blobs, 3 bytes, left out" in outcome.stderr
