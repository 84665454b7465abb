"""What a run tells: progress, the report, the plan of a dry run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest
from azcp_runtime.contract import ENV_PROGRESS, ExitCode

from tests.lab import faults
from tests.lab.dataset import plain_data_set
from tests.lab.expectations import expect_distributed
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault
from tests.lab.mpi import distribute
from tests.lab.stored_blobs import stored

MIB: Final = 1 << 20


def test_progress_goes_to_standard_error_in_lines_where_there_is_no_terminal(dest: Path) -> None:
    data_set = plain_data_set(8 * MIB)
    with FaultAccount(stored(data_set), [Fault(faults.slow(MIB), times=FOREVER)]) as account:
        outcome = distribute(
            account.url(), dest, "--concurrency=1", ranks=2, nodes=2, env={ENV_PROGRESS: "lines"}
        )
    expect_distributed(outcome, dest, data_set, nodes=2)
    assert re.search(r"\d+ ?%", outcome.stderr)
    assert "\x1b[" not in outcome.stderr


def test_the_live_display_stays_off_standard_output(dest: Path) -> None:
    data_set = plain_data_set(3 * MIB)
    with FaultAccount(stored(data_set)) as account:
        outcome = distribute(account.url(), dest, ranks=2, nodes=2, env={ENV_PROGRESS: "live"})
    expect_distributed(outcome, dest, data_set, nodes=2)
    assert "\x1b[" in outcome.stderr


def test_no_progress_leaves_standard_error_empty(dest: Path) -> None:
    data_set = plain_data_set(MIB)
    with FaultAccount(stored(data_set)) as account:
        outcome = distribute(account.url(), dest, "--no-progress", ranks=2, nodes=2)
    expect_distributed(outcome, dest, data_set, nodes=2)
    assert outcome.stderr == ""


def test_the_report_accounts_for_every_byte(dest: Path, tmp_path: Path) -> None:
    data_set = plain_data_set(*[700_000] * 9)
    report = tmp_path / "report.json"
    with FaultAccount(stored(data_set)) as account:
        outcome = distribute(account.url(), dest, f"--report={report}", ranks=3, nodes=3)
    expect_distributed(outcome, dest, data_set, nodes=3)
    told = json.loads(report.read_text())
    assert (told["schema"], told["nodes"], told["rails"]) == (1, 3, 1)
    assert told["stages"]["list"]["files"] == 9
    assert sum(rank["fetched_bytes"] for rank in told["ranks"]) == data_set.total_bytes
    for rank in told["ranks"]:
        assert rank["fetched_bytes"] + rank["received_bytes"] == data_set.total_bytes
        assert rank["written_bytes"] >= data_set.total_bytes


@pytest.mark.parametrize("ranks", [None, 2])
def test_a_dry_run_reads_and_writes_nothing(dest: Path, ranks: int | None) -> None:
    data_set = plain_data_set(10, 3 * MIB)
    with FaultAccount(stored(data_set)) as account:
        outcome = distribute(account.url(), dest, "--dry-run", ranks=ranks, nodes=ranks).expect(ExitCode.DONE)
        assert account.reads() == []
    assert list(dest.iterdir()) == []
    assert str(data_set.total_bytes) in outcome.text.replace(",", "")
