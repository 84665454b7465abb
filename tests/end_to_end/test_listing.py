"""What belongs to the data set: prefixes, names, markers, lists and directories."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab.dataset import HARD_NAMES, NAMES_BEYOND_AZURITE, hard_data_set, plain_data_set
from tests.lab.expectations import expect_distributed, expect_failure
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import StoredBlob, stored
from tests.lab.summary import parse_summary
from tests.lab.trees import assert_same, final_files

MIB: Final = 1 << 20


def test_names_that_only_the_real_service_keeps_arrive_as_they_are(dest: Path) -> None:
    data_set = hard_data_set(100, chunk_bytes=65536, names=HARD_NAMES + NAMES_BEYOND_AZURITE)
    with FaultAccount(stored(data_set, "p/"), page_blobs=9) as account:
        outcome = distribute(account.url("data/p"), dest, ranks=2, nodes=2)
    expect_distributed(outcome, dest, data_set, nodes=2)


@pytest.mark.parametrize("ranks", [None, 3])
def test_a_directory_is_a_source_like_an_account(dest: Path, tmp_path: Path, ranks: int | None) -> None:
    data_set = hard_data_set(120, chunk_bytes=65536, names=(*HARD_NAMES, "back\\slash", "bell\x07"))
    data_set.write_to(tmp_path / "source")
    outcome = distribute(str(tmp_path / "source"), dest, ranks=ranks, nodes=ranks).expect(ExitCode.DONE)
    assert parse_summary(outcome.stdout).files == len(data_set.blobs)
    for tree in [dest] if ranks is None else [dest / f"node{node}" for node in range(ranks)]:
        assert_same(tree, data_set.manifest)


@pytest.mark.parametrize("asked", ["models/llama", "models/llama/"])
def test_a_prefix_ends_at_a_slash(dest: Path, asked: str) -> None:
    names = ("models/llama/a", "models/llama/b/c", "models/llama2/a", "models/llama-old", "models/other")
    with FaultAccount({name: StoredBlob(name.encode()) for name in names}) as account:
        distribute(account.url(f"data/{asked}"), dest).expect(ExitCode.DONE)
    assert final_files(dest) == ["a", "b/c"]


def test_a_prefix_with_a_percent_sign_is_decoded_once(dest: Path) -> None:
    names = ("100%25/a", "100%/b")
    with FaultAccount({name: StoredBlob(b"x") for name in names}) as account:
        distribute(account.url("data/100%25/"), dest).expect(ExitCode.DONE)
    assert final_files(dest) == ["a"]


def test_markers_of_every_kind_stay_out_and_empty_blobs_are_made(dest: Path) -> None:
    marker = StoredBlob(b"", metadata={"hdi_isfolder": "true"})
    blobs = {
        "p": marker,
        "p/": StoredBlob(b""),
        "p/folder": marker,
        "p/folder/file": StoredBlob(b"data"),
        "p/lonely": marker,
        "p/upper": StoredBlob(b"", metadata={"Hdi_isfolder": "true"}),
        "p/slash/": StoredBlob(b""),
        "p/parent": StoredBlob(b""),
        "p/parent/child": StoredBlob(b"child"),
        "p/empty": StoredBlob(b""),
    }
    with FaultAccount(blobs) as account:
        outcome = distribute(account.url("data/p"), dest, ranks=2, nodes=2).expect(ExitCode.DONE)
    assert parse_summary(outcome.stdout).files == 3
    for node in ("node0", "node1"):
        assert final_files(dest / node) == ["empty", "folder/file", "parent/child"]
        assert (dest / node / "empty").stat().st_size == 0


def test_a_prefix_without_blobs_says_so(dest: Path) -> None:
    with FaultAccount(stored(plain_data_set(10))) as account:
        outcome = distribute(account.url("data/nothing/here/"), dest, ranks=2, nodes=2)
    assert outcome.code == ExitCode.LIST
    assert "nothing/here" in outcome.stderr


def test_the_listing_is_all_that_is_asked_of_blobs_without_bytes(dest: Path) -> None:
    names = [f"{number % 50}/{number}" for number in range(5000)]
    with FaultAccount(dict.fromkeys(names, StoredBlob(b"")), page_blobs=1000) as account:
        distribute(account.url(), dest, ranks=2, nodes=2).expect(ExitCode.DONE)
        asked = [exchange.request for exchange in account.exchanges()]
    assert [(request.method, request.is_list) for request in asked] == [("GET", True)] * 5
    assert len(final_files(dest / "node1")) == len(names)


def test_a_shardlist_takes_the_place_of_the_listing(dest: Path, tmp_path: Path) -> None:
    data_set = plain_data_set(0, 10, 70_000, 50)
    shardlist = tmp_path / "list.tsv"
    lines = [f"p/{blob.name}\t{blob.content.size}\tMon, 01 Jan 2024 00:00:00 GMT" for blob in data_set.blobs]
    shardlist.write_text("# made by hand\n\n" + "\n".join(lines) + "\n")
    with FaultAccount(stored(data_set, "p/")) as account:
        outcome = distribute(account.url("data/p/"), dest, f"--shardlist={shardlist}", ranks=2, nodes=2)
        expect_distributed(outcome, dest, data_set, nodes=2)
        assert not any(exchange.request.is_list for exchange in account.exchanges())


def test_what_is_no_file_in_a_directory_source_is_named_or_left_out_and_never_waited_for(
    dest: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "source"
    plain_data_set(10).write_to(folder)
    os.mkfifo(folder / "pipe")
    (folder / "dangling").symlink_to("nowhere")
    outcome = distribute(str(folder), dest, ranks=2, nodes=2)
    if outcome.code == ExitCode.DONE:
        assert final_files(dest / "node1") == ["b0"]
    else:
        expect_failure(outcome, ExitCode.LIST)
