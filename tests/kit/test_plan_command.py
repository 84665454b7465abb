"""azcp-kit plan joins the runtime's own plan with the predicted time, for people and for scripts."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from azcp_kit import __version__
from azcp_kit.plan import ClusterPlan, PlanRequest, plan_cluster, plan_json, planner_argv, read_plan
from azcp_kit.plan_table import plan_tables
from azcp_kit.predict import START_S, Resource
from azcp_runtime.contract import ExitCode, PlanError, UsageError
from rich.console import Console

GIB = 2**30
ANSWER = {
    "files": 2,
    "bytes": 400 * GIB,
    "shards": 64,
    "ranks": 8,
    "rails": 2,
    "owners": [{"rank": rank, "bytes": (49 + rank % 3) * GIB} for rank in range(8)],
    "spread_percent": 4.0,
    "chunk_bytes": 16 * 2**20,
    "own_slots": 4,
    "memory_bytes": 2 * GIB,
}


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    path = tmp_path / "listing.tsv"
    path.write_text("model/weights\t300000000\nmodel/tokenizer json\t1000\nempty\t0\n")
    return path


def request_for(listing: Path, ranks: int = 8, rails: int = 2, memory: str = "") -> PlanRequest:
    return PlanRequest(listing, ranks, rails, memory, egress=25e9, fabric=50e9, disk=10e9)


def sample() -> ClusterPlan:
    return read_plan(ANSWER, request_for(Path("listing.tsv")))


def kit(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.prefix, "bin", "azcp-kit")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)


def test_ranks_that_share_a_node_are_one_node_of_the_forecast() -> None:
    plan = sample()
    assert plan.cluster.nodes == 4
    assert plan.forecasts.one_pass.bound_by is Resource.DISK
    assert plan.forecasts.every_node_downloads.egress_bytes == 4 * 400 * GIB


def test_the_balance_is_that_of_the_ranks_that_download() -> None:
    balance = sample().balance
    assert (balance.owners, balance.least_bytes, balance.most_bytes) == (8, 49 * GIB, 51 * GIB)
    assert balance.mean_bytes == pytest.approx(49.875 * GIB)


def test_the_memory_is_left_to_the_planner_unless_given() -> None:
    assert "--memory" not in planner_argv(request_for(Path("x")))
    assert planner_argv(request_for(Path("x"), memory="1GiB"))[-2:] == ["--memory", "1GiB"]


def test_an_answer_with_a_part_missing_is_refused() -> None:
    answer = {name: value for name, value in ANSWER.items() if name != "shards"}
    with pytest.raises(PlanError, match="incomplete"):
        read_plan(answer, request_for(Path("x")))


def test_the_json_has_seconds_bytes_and_the_bottleneck_of_each_way() -> None:
    data = json.loads(json.dumps(plan_json(sample())))
    assert set(data["forecasts"]) == {"one_pass", "two_stages", "every_node_downloads"}
    terms = data["formula"]
    assert data["forecasts"]["one_pass"] == {
        "seconds": pytest.approx(START_S + 400 * GIB / 10e9 / terms["busy_share"] + terms["rounds"]),
        "bound_by": "disk",
        "egress_bytes": 400 * GIB,
    }
    assert terms["busy"]["disk"] == pytest.approx(400 * GIB / 10e9)
    assert data["rates"] == {"egress": 25e9, "fabric": 50e9, "disk": 10e9}


def test_the_tables_show_balance_memory_egress_time_and_bottleneck() -> None:
    console = Console(file=io.StringIO(), width=120)
    console.print(plan_tables(sample()))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for expected in (
        "to 4 nodes, 2 rails each",
        "spread 4.00 %",
        "2.00 GiB",
        "44.7 s",
        "1.56 TiB",
        "max(17.2 s account egress, 6.44 s fabric, 42.9 s disk) / 0.97",
    ):
        assert expected in text


def test_the_runtimes_planner_answers_for_a_listing(listing: Path) -> None:
    plan = plan_cluster(request_for(listing))
    assert (plan.files, plan.size_bytes) == (3, 300_001_000)
    assert plan.balance.mean_bytes * plan.balance.owners == pytest.approx(300_001_000)


def test_a_world_that_rails_do_not_divide_is_refused(listing: Path) -> None:
    with pytest.raises(UsageError, match="rails"):
        plan_cluster(request_for(listing, ranks=7))


def test_the_command_prints_json_on_stdout_and_nothing_else(listing: Path) -> None:
    done = kit("plan", "--listing", str(listing), "--ranks", "16", "--json")
    assert json.loads(done.stdout)["nodes"] == 16
    assert (done.returncode, done.stderr) == (0, "")


def test_a_rate_that_is_none_ends_in_one_line_and_the_exit_code_of_usage(listing: Path) -> None:
    done = kit("plan", "--listing", str(listing), "--ranks", "4", "--egress", "fast")
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert done.stderr == "azcp-kit: 'fast' is not a rate such as 50Gbps (bits) or 500MiB/s (bytes)\n"


def test_the_version_is_printed() -> None:
    assert kit("--version").stdout == f"azcp-kit {__version__}\n"
