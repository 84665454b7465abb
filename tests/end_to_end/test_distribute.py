"""A data set from an account to every node: the main job, as users run it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from azcp_runtime.contract import ExitCode

from tests.lab.content import Content
from tests.lab.counting_proxy import CountingProxy
from tests.lab.dataset import Blob, DataSet, hard_data_set, plain_data_set
from tests.lab.expectations import expect_distributed
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import stored
from tests.lab.summary import parse_summary
from tests.lab.trees import assert_same
from tests.lab.upload import account_key, blob_url, upload

if TYPE_CHECKING:
    from azcp_kit.azurite import Azurite

MIB: Final = 1 << 20
CHUNK: Final = MIB
CHUNK_OPTION: Final = "--bcast-chunk=1MiB"
PREFIX: Final = "models/llama 3+#/"
FILES: Final = 2048


@pytest.fixture(scope="module")
def hard() -> DataSet:
    """The data set with everything that hurts."""
    return hard_data_set(FILES, chunk_bytes=CHUNK)


@pytest.fixture(scope="module")
def hard_container(azurite: Azurite, hard: DataSet) -> str:
    """It in a container of Azurite, with a neighbour whose name begins like its prefix."""
    upload(hard, azurite, "hard", PREFIX)
    upload(plain_data_set(10), azurite, "hard", PREFIX.rstrip("/") + "2/")
    return "hard"


def test_four_nodes_get_two_thousand_blobs_byte_for_byte_and_the_account_serves_each_once(
    azurite: Azurite, hard: DataSet, hard_container: str, dest: Path
) -> None:
    with CountingProxy(azurite.endpoint) as proxy:
        outcome = distribute(
            blob_url(proxy.endpoint, hard_container, PREFIX),
            dest,
            CHUNK_OPTION,
            ranks=4,
            nodes=4,
            env=account_key(azurite),
        )
        expect_distributed(outcome, dest, hard, nodes=4)
        assert hard.total_bytes <= proxy.blob_bytes() <= 1.001 * hard.total_bytes
        assert proxy.listings() == 1
        assert set(proxy.statuses()) <= {200, 206}


@pytest.mark.parametrize(("ranks", "nodes"), [(1, 1), (2, 2), (3, 3), (7, 7), (4, 2), (6, 3)])
def test_any_number_of_nodes_and_ranks_on_a_node_gets_the_same_trees(
    azurite: Azurite, hard: DataSet, hard_container: str, dest: Path, ranks: int, nodes: int
) -> None:
    with CountingProxy(azurite.endpoint) as proxy:
        outcome = distribute(
            blob_url(proxy.endpoint, hard_container, PREFIX),
            dest,
            CHUNK_OPTION,
            ranks=ranks,
            nodes=nodes,
            env=account_key(azurite),
        )
        expect_distributed(outcome, dest, hard, nodes)
        assert proxy.blob_bytes() <= 1.001 * hard.total_bytes


def test_one_blob_of_a_gigabyte_and_a_half_is_fetched_in_shares_by_all(
    azurite: Azurite, container: str, dest: Path, tmp_path: Path
) -> None:
    data_set = DataSet((Blob("weights.bin", Content(1536 * MIB, seed=5), in_blocks=True),))
    upload(data_set, azurite, container, "")
    report = tmp_path / "report.json"
    with CountingProxy(azurite.endpoint) as proxy:
        outcome = distribute(
            blob_url(proxy.endpoint, container),
            dest,
            f"--report={report}",
            ranks=4,
            nodes=4,
            env=account_key(azurite),
        )
        expect_distributed(outcome, dest, data_set, nodes=4)
        assert proxy.blob_bytes() <= 1.001 * data_set.total_bytes
    fetched = [rank["fetched_bytes"] for rank in json.loads(report.read_text())["ranks"]]
    assert sum(fetched) == data_set.total_bytes
    assert max(fetched) <= 1.5 * data_set.total_bytes / 4


def test_one_process_without_mpirun_is_a_world_of_one(
    azurite: Azurite, hard: DataSet, hard_container: str, dest: Path
) -> None:
    url = blob_url(azurite.endpoint, hard_container, PREFIX)
    outcome = distribute(url, dest, env=account_key(azurite)).expect(ExitCode.DONE)
    assert parse_summary(outcome.stdout).files == FILES
    assert_same(dest, hard.manifest)


def test_no_broadcast_needs_no_mpi(dest: Path) -> None:
    data_set = plain_data_set(0, 1, 3 * MIB)
    with FaultAccount(stored(data_set)) as account:
        distribute(account.url(), dest, "--no-broadcast", env={"PATH": "/usr/bin:/bin"}).expect(ExitCode.DONE)
    assert_same(dest, data_set.manifest)


@pytest.mark.parametrize("option", ["--shard-size=2MiB", "--file-shards=8"])
def test_shards_of_one_large_blob_are_shared_among_the_ranks(dest: Path, tmp_path: Path, option: str) -> None:
    data_set = plain_data_set(16 * MIB + 5)
    report = tmp_path / "report.json"
    with FaultAccount(stored(data_set)) as account:
        outcome = distribute(
            account.url(), dest, option, CHUNK_OPTION, f"--report={report}", ranks=4, nodes=4
        )
    expect_distributed(outcome, dest, data_set, nodes=4)
    fetched = [rank["fetched_bytes"] for rank in json.loads(report.read_text())["ranks"]]
    assert sum(fetched) == data_set.total_bytes
    assert max(fetched) <= 6 * MIB


def test_only_the_download_ranks_read_from_the_account(dest: Path, tmp_path: Path) -> None:
    data_set = plain_data_set(*[MIB] * 12)
    report = tmp_path / "report.json"
    with FaultAccount(stored(data_set)) as account:
        outcome = distribute(
            account.url(), dest, "--download-ranks=2", f"--report={report}", ranks=4, nodes=4
        )
    expect_distributed(outcome, dest, data_set, nodes=4)
    fetched = [rank["fetched_bytes"] for rank in json.loads(report.read_text())["ranks"]]
    assert [bytes_ > 0 for bytes_ in fetched] == [True, True, False, False]


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_buffers_stay_within_the_memory_given(dest: Path, tmp_path: Path, ranks: int) -> None:
    data_set = plain_data_set(160 * MIB, *[MIB] * 20)
    report = tmp_path / "report.json"
    with FaultAccount(stored(data_set)) as account:
        outcome = distribute(
            account.url(), dest, "--memory=64MiB", f"--report={report}", ranks=ranks, nodes=ranks
        )
    expect_distributed(outcome, dest, data_set, nodes=ranks)
    resident = [rank["max_rss_bytes"] for rank in json.loads(report.read_text())["ranks"]]
    assert max(resident) < 264 * MIB
