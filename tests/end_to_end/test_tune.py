"""The probe that finds chunk and window: what it tells and leaves, when there is none, and how it ends."""

from __future__ import annotations

import json
import re
import signal
from typing import TYPE_CHECKING, Any, Final

import pytest
from azcp_runtime.contract import STATE_DIR, ExitCode

from tests.lab.dataset import plain_data_set
from tests.lab.expectations import FAILS_WITHIN_S, REASON, expect_trees
from tests.lab.fault_account import FaultAccount
from tests.lab.mpi import Job, distribute, started
from tests.lab.processes import kill
from tests.lab.stored_blobs import stored
from tests.lab.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

MIB: Final = 1 << 20
DATA: Final = plain_data_set(*[40 * MIB + 7] * 4, 10)
ALWAYS: Final = "--bcast-tune=always"
LINE: Final = re.compile(
    r"^\[tune\] chunk (\d+)([KM])iB, window (\d+).*: broadcast .*, write .*; took \d+\.\d s; "
    r"pin with --bcast-chunk \1\2iB --bcast-pipeline \3$",
    re.MULTILINE,
)
DEADLINE_S: Final = 60.0


def report_of(path: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(path.read_text())
    return report


@pytest.mark.parametrize(("ranks", "nodes"), [(2, 2), (4, 4), (4, 2)])
def test_the_pass_has_what_the_probe_has_chosen_and_nothing_of_the_probe_is_left(
    dest: Path, tmp_path: Path, ranks: int, nodes: int
) -> None:
    report = tmp_path / "report.json"
    options = (ALWAYS, "--memory=40MiB", f"--report={report}", "--no-progress")
    with FaultAccount(stored(DATA)) as account:
        outcome = distribute(account.url(), dest, *options, ranks=ranks, nodes=nodes).expect(ExitCode.DONE)
    expect_trees(dest, DATA, nodes)
    assert len(LINE.findall(outcome.stderr)) == 1, outcome.stderr
    plan, tune = (report_of(report)[name] for name in ("plan", "tune"))
    assert (plan["chunk_bytes"], plan["lane_slots"]) == (tune["chunk_bytes"], tune["window"])
    assert plan["memory_bytes"] <= 40 * MIB
    assert tune["trials"][0]["chunk_bytes"] == tune["default"]["chunk_bytes"]
    assert all(each["bytes_per_s"] > 0 for each in tune["trials"])
    for node in range(nodes):
        state = dest / f"node{node}" / STATE_DIR
        assert [path.name for path in state.iterdir() if not re.match("journal|lock", path.name)] == []


@pytest.mark.parametrize(
    "options",
    [(), ("--bcast-tune=off",), (ALWAYS, "--bcast-chunk=1MiB"), (ALWAYS, "--dry-run")],
)
def test_nothing_is_tried_for_a_small_set_or_what_is_pinned(
    dest: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    report = tmp_path / "report.json"
    with FaultAccount(stored(DATA)) as account:
        outcome = distribute(account.url(), dest, *options, f"--report={report}", ranks=2, nodes=2)
    assert "[tune]" not in outcome.expect(ExitCode.DONE).text
    assert not report.exists() or report_of(report)["tune"] == {}


def in_the_probe(job: Job) -> bool:
    """Whether the ranks are between the diff and what the probe tells."""
    said = job.output()
    assert "[tune]" not in said, "too late"
    return "[diff]" in said


def test_a_rank_that_is_killed_in_the_probe_ends_the_job_and_leaves_nothing(dest: Path) -> None:
    with FaultAccount(stored(DATA)) as account:
        with started(account.url(), dest, ALWAYS, "--no-progress", ranks=3, nodes=3) as job:
            wait_until(lambda: in_the_probe(job), DEADLINE_S, "the probe")
            job.kill_rank(1)
            outcome = job.wait(FAILS_WITHIN_S)
            job.wait_until_gone()
        assert outcome.code != ExitCode.DONE
        assert "[tune]" not in outcome.stderr
        for node in range(3):
            state = dest / f"node{node}" / STATE_DIR
            assert [path.name for path in state.iterdir() if path.name.startswith("trial")] == []
        distribute(account.url(), dest, ALWAYS, ranks=3, nodes=3).expect(ExitCode.DONE)
    expect_trees(dest, DATA, 3)


def test_a_rank_that_is_stopped_in_the_probe_is_named(dest: Path) -> None:
    options = (ALWAYS, "--stall-timeout=3", "--no-progress")
    with (
        FaultAccount(stored(DATA)) as account,
        started(account.url(), dest, *options, ranks=3, nodes=3) as job,
    ):
        wait_until(lambda: in_the_probe(job), DEADLINE_S, "the probe")
        kill(job.ranks()[1], signal.SIGSTOP)
        outcome = job.wait(FAILS_WITHIN_S)
        job.wait_until_gone()
    outcome.expect(ExitCode.BROADCAST)
    assert REASON in outcome.stderr
    assert "no sign of life from rank 1" in outcome.stderr
    assert "Traceback" not in outcome.stderr
