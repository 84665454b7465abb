"""Which ranks share a folder: those of one node must, those of two nodes must not."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from azcp_runtime.contract import ExitCode

from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_failure
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import DISTRIBUTE, distribute
from tests.lab.stored_blobs import stored
from tests.lab.trees import assert_same, final_files

MIB: Final = 1 << 20
DATA: Final = plain_data_set(32 * MIB)


def another_rank(source: str, dest: Path) -> list[str]:
    """What makes a command line of mpirun one of several programs, with one more rank at its end."""
    return [":", "-n", "1", str(DISTRIBUTE), source, str(dest)]


def test_two_ranks_of_one_node_with_different_destinations_are_refused(dest: Path) -> None:
    with FaultAccount(stored(DATA)) as account:
        url = account.url()
        outcome = distribute(url, dest / "first", *another_rank(url, dest / "second"), ranks=1)
        assert account.reads() == []
    expect_failure(outcome, ExitCode.PREFLIGHT, "ranks of one node must share DEST", str(dest))
    assert final_files(dest) == []


def test_two_ranks_of_one_node_share_their_destination(dest: Path) -> None:
    with FaultAccount(stored(DATA)) as account:
        url = account.url()
        distribute(url, dest, *another_rank(url, dest), ranks=1).expect(ExitCode.DONE)
        assert account.served_bytes() == DATA.total_bytes
    assert_same(dest, DATA.manifest)


def test_two_ranks_of_one_node_may_spell_their_destination_differently(dest: Path) -> None:
    (dest / "folder").mkdir()
    (dest / "link").symlink_to("folder")
    with FaultAccount(stored(DATA)) as account:
        url = account.url()
        distribute(url, dest / "folder", *another_rank(url, dest / "link"), ranks=1).expect(ExitCode.DONE)
    assert_same(dest / "folder", DATA.manifest)


def test_two_nodes_whose_destinations_are_one_folder_are_refused(dest: Path) -> None:
    (dest / "node0").mkdir()
    (dest / "node1").symlink_to("node0")
    with FaultAccount(stored(DATA)) as account:
        outcome = distribute(account.url(), dest, ranks=2, nodes=2)
        assert account.reads() == []
    expect_failure(outcome, ExitCode.PREFLIGHT, "same folder")
    assert final_files(dest / "node0") == []
