"""What a run says of its nodes before its first byte."""

from __future__ import annotations

from pathlib import Path

from azcp_runtime.contract import ExitCode

from tests.lab.expectations import expect_failure
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import StoredBlob

BLOBS = {name: StoredBlob(name.encode()) for name in ("p/a.bin", "p/b.txt", "p/x/c.bin", "p/x/d.txt")}


def test_rdma_that_is_required_and_not_there_ends_the_run_before_the_account_is_asked(dest: Path) -> None:
    with FaultAccount(BLOBS) as account:
        outcome = distribute(account.url("data/p"), dest, "--require-rdma", ranks=2, nodes=2)
        assert account.exchanges() == []
    expect_failure(outcome, ExitCode.PREFLIGHT, "--require-rdma asks for RDMA", "on all 2 nodes")
    lines = outcome.stderr.splitlines()
    assert any(line.startswith("  transport: TCP") for line in lines)
    assert outcome.stderr.count("on all 2 nodes") == outcome.stderr.count("--require-rdma asks") == 1
    assert "  drop --require-rdma to run on TCP" in lines
    assert "--allow-tcp" not in outcome.stderr


def test_tcp_where_there_is_nothing_else_is_not_worth_a_word(dest: Path) -> None:
    with FaultAccount(BLOBS) as account:
        outcome = distribute(account.url("data/p"), dest, "--no-progress", ranks=2, nodes=2)
    assert outcome.expect(ExitCode.DONE).stderr == ""
