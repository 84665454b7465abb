"""--report of runs that end well, fail or are interrupted: what is known, the reason, and no secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from azcp_kit.report import parse_report
from azcp_kit.timeline import timeline
from azcp_runtime import __version__
from azcp_runtime.contract import ENV_PROGRESS, ENV_SAS, REPORT_SCHEMA, ExitCode

from tests.lab import faults
from tests.lab.dataset import plain_data_set
from tests.lab.fault_account import FaultAccount
from tests.lab.faults import FOREVER, Fault
from tests.lab.mpi import distribute, started
from tests.lab.stored_blobs import stored
from tests.lab.trees import final_files
from tests.lab.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

MIB: Final = 1 << 20
SIGNATURE: Final = "c2VjcmV0LXBsYW50ZWQtaGVyZQ"
SAS: Final = f"sv=2022-11-02&sr=c&sp=rl&se=2199-01-01T00:00:00Z&sig={SIGNATURE}"
DEADLINE_S: Final = 60.0


def told(report: Path) -> dict[str, Any]:
    """The report, which the toolkit can read and which has left nothing beside it."""
    assert [path.name for path in report.parent.iterdir() if "report.json" in path.name] == [report.name]
    data: dict[str, Any] = json.loads(report.read_text())
    parse_report(data)
    return data


def test_a_report_tells_the_plan_the_versions_the_transport_and_each_ranks_series(
    dest: Path, tmp_path: Path
) -> None:
    data_set = plain_data_set(*[MIB] * 6)
    report = tmp_path / "report.json"
    with FaultAccount(stored(data_set)) as account:
        distribute(account.url(), dest, f"--report={report}", ranks=2, nodes=2).expect(ExitCode.DONE)
    data = told(report)
    assert data["schema"] == REPORT_SCHEMA
    assert data["outcome"] == {"status": "done", "exit_code": 0, "reason": ""}
    plan = {name: data["plan"][name] for name in ("files", "bytes", "owners")}
    assert plan == {"files": 6, "bytes": 6 * MIB, "owners": 2}
    assert data["plan"]["chunk_bytes"] * 2 <= data["plan"]["memory_bytes"]
    assert (data["versions"]["azcp"], data["versions"]["Open MPI"][:2]) == (__version__, "4.")
    assert data["transport"]["pml"]
    for rank in data["ranks"]:
        assert rank["samples"]["fetched"][-1] + rank["samples"]["received"][-1] == 6 * MIB


@pytest.mark.parametrize("ranks", [None, 2])
def test_a_run_that_fails_tells_why_and_what_was_done(dest: Path, tmp_path: Path, ranks: int | None) -> None:
    data_set = plain_data_set(*[MIB] * 6)
    report = tmp_path / "report.json"
    report.write_text("earlier")
    arguments = (f"--report={report}", "--max-retries=0", "--concurrency=1")
    with FaultAccount(stored(data_set), [Fault(faults.server_error(), after=3, times=FOREVER)]) as account:
        outcome = distribute(account.url(), dest, *arguments, ranks=ranks, nodes=ranks)
    outcome.expect(ExitCode.DOWNLOAD)
    data = told(report)
    assert (data["outcome"]["status"], data["outcome"]["exit_code"]) == ("failed", ExitCode.DOWNLOAD)
    assert "500" in data["outcome"]["reason"]
    assert set(data["stages"]) == {"list", "diff"}
    assert data["plan"]["files"] == 6
    assert [rank["rank"] for rank in data["ranks"]] == [0]


def test_a_run_that_cannot_list_has_no_stage_to_tell_of(dest: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    with FaultAccount({}) as account:
        url = account.url()
    distribute(url, dest, f"--report={report}", "--max-retries=0", "--retry-time=1").expect(ExitCode.LIST)
    data = told(report)
    assert (data["outcome"]["exit_code"], data["stages"], data["ranks"]) == (ExitCode.LIST, {}, [])


def test_an_interrupted_run_tells_what_it_had_moved(dest: Path, tmp_path: Path) -> None:
    data_set = plain_data_set(*[4 * MIB] * 4)
    report = tmp_path / "report.json"
    slow = [Fault(faults.slow(2 * MIB), times=FOREVER)]
    with (
        FaultAccount(stored(data_set), slow) as account,
        started(account.url(), dest, f"--report={report}", "--concurrency=1", ranks=2, nodes=2) as job,
    ):
        wait_until(lambda: account.served_bytes() > 4 * MIB, DEADLINE_S, "bytes served")
        job.terminate()
        job.wait().expect(ExitCode.RESUMABLE)
    data = told(report)
    assert data["outcome"]["status"] == "interrupted"
    assert "SIGTERM" in data["outcome"]["reason"]
    assert 0 < data["ranks"][0]["samples"]["fetched"][-1] < 16 * MIB


def test_what_a_node_gets_from_the_others_is_progress_and_no_download(dest: Path, tmp_path: Path) -> None:
    data_set = plain_data_set(*[MIB] * 4)
    report, lines = tmp_path / "report.json", {ENV_PROGRESS: "lines"}
    with FaultAccount(stored(data_set)) as account:
        distribute(account.url(), dest, ranks=2, nodes=2).expect(ExitCode.DONE)
        for path in final_files(dest / "node1"):
            (dest / "node1" / path).unlink()
        again = distribute(account.url(), dest, f"--report={report}", ranks=2, nodes=2, env=lines)
        nothing = distribute(account.url(), dest, ranks=2, nodes=2, env=lines)
    assert "[progress] 100.0% 4.0 MiB of 4.0 MiB, fetch " in again.expect(ExitCode.DONE).stderr
    assert "[progress]" not in nothing.expect(ExitCode.DONE).stderr
    drawing = timeline(parse_report(told(report)))
    assert drawing.title == "Read, broadcast and write in one pass"
    assert [band.done for band in drawing.bands][:1] == ["nothing to write"]


@pytest.mark.parametrize(
    "fault",
    [None, Fault(faults.forbidden("AuthorizationFailure"), after=1, times=FOREVER)],
    ids=["well", "403"],
)
def test_no_report_holds_the_signature(dest: Path, tmp_path: Path, fault: Fault | None) -> None:
    report = tmp_path / "report.json"
    with FaultAccount(stored(plain_data_set(MIB, MIB)), [fault] if fault else []) as account:
        outcome = distribute(f"{account.url()}?{SAS}", dest, f"--report={report}", env={ENV_SAS: ""})
    assert (outcome.code == ExitCode.DONE) is (fault is None)
    assert SIGNATURE not in report.read_text() + outcome.text
    told(report)
