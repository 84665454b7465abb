"""A batch script is rehearsed on the Slurm that is there: from the controller, on the lab's nodes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from azcp_kit.azurite import find_azurite
from azcp_runtime.contract import ExitCode

from tests.lab.requirements import missing
from tests.lab.slurm import Cluster
from tests.lab.slurm.machine import PATH
from tests.lab.slurm_tree import put_tree
from tests.slurm.batch_job import DEST, BatchJob

REPOSITORY: Final = Path(__file__).resolve().parents[2]
SOURCE: Final = "https://examplemodels.blob.core.windows.net/models/llama"
DEADLINE_S: Final = 240.0


@dataclass(frozen=True)
class Rehearsals:
    """Rehearsals on a cluster."""

    cluster: Cluster

    def run(self, text: str, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
        """azcp-kit rehearse on the controller, where its user is."""
        file = self.cluster.shared / "job.sbatch"
        file.write_text(text, encoding="utf-8")
        path = ":".join(str(REPOSITORY / name) for name in ("toolkit", "runtime"))
        node = shutil.which("node") or ""
        return self.cluster.run(
            sys.executable,
            "-c",
            "from azcp_kit.cli import main; main()",
            "rehearse",
            str(file),
            "--json",
            "--size",
            "4MiB",
            *options,
            env={"PYTHONPATH": path, "PATH": f"{PATH}:{Path(node).parent}", **env},
            timeout_s=DEADLINE_S,
        )

    def outcome(self, text: str, *options: str, code: int = 0, **env: str) -> dict[str, Any]:
        """What it tells as JSON, where it ends with that code."""
        ended = self.run(text, *options, **env)
        assert ended.returncode == code, ended.stdout + ended.stderr
        found: dict[str, Any] = json.loads(ended.stdout)
        return found

    def leftovers(self) -> list[str]:
        """What a rehearsal has left on the nodes and in the shared folder."""
        places = [self.cluster.nvme(node) for node in self.cluster.nodes]
        found = [str(path) for place in places for path in place.rglob("*azcp-rehearsal*")]
        return [*found, *(str(path) for path in self.cluster.shared.glob(".azcp-rehearsal*"))]


@pytest.fixture(scope="module")
def rehearsals(cluster: Cluster, tree: Path) -> Rehearsals:
    """Four nodes that have the tree, and Azurite to be had."""
    if find_azurite() is None:
        missing("azurite", "Azurite is not installed: put Node.js with npm on PATH, then `make clean venv`")
    put_tree(cluster, tree)
    return Rehearsals(cluster)


@pytest.fixture(autouse=True)
def _clean(rehearsals: Rehearsals) -> Iterator[None]:
    """Leave no notes and no folders to the next test."""
    yield
    shutil.rmtree(rehearsals.cluster.shared / "notes", ignore_errors=True)
    for node in rehearsals.cluster.nodes:
        shutil.rmtree(rehearsals.cluster.nvme(node) / Path(DEST).name, ignore_errors=True)


def job(rehearsals: Rehearsals, **options: Any) -> BatchJob:  # noqa: ANN401 - of BatchJob
    return BatchJob(rehearsals.cluster, SOURCE, **options)


def test_a_generated_script_runs_as_a_job_of_fewer_nodes(rehearsals: Rehearsals) -> None:
    batch = job(rehearsals, words=["a b", "$HOME"])
    outcome = rehearsals.outcome(batch.script(), "--nodes", "2", AZCP_SAS="sv=1&sig=mine")
    assert (outcome["nodes"], outcome["manifest_nodes"]) == (2, 4)
    assert [entry["differences"] for entry in outcome["data"]] == [[], []]
    batch.expect_places(("node1", "node2"))
    (pod,) = outcome["pods"]
    assert (pod["verdict"], pod["phase"]) == ("ok", "COMPLETED")
    assert "sig=mine" not in json.dumps(outcome)
    assert rehearsals.leftovers() == []


def test_what_is_at_the_destination_already_stays_as_it_is(rehearsals: Rehearsals) -> None:
    own = [rehearsals.cluster.nvme(node) / Path(DEST).name / "own" for node in rehearsals.cluster.nodes]
    for file in own:
        file.parent.mkdir()
        file.write_text("mine", encoding="utf-8")
    rehearsals.outcome(job(rehearsals).script())
    for file in own:
        assert [path.name for path in file.parent.iterdir()] == ["own"]
        assert file.read_text(encoding="utf-8") == "mine"


def test_a_file_with_the_signature_takes_the_place_of_the_scripts_own(rehearsals: Rehearsals) -> None:
    batch = job(rehearsals, lines=['sas-file = "/shared/home/me/models.sas"'])
    outcome = rehearsals.outcome(batch.script(launch="pmix"), "--nodes", "2")
    assert [entry["differences"] for entry in outcome["data"]] == [[], []]
    assert rehearsals.leftovers() == []


def test_a_command_that_fails_is_told_and_the_data_is_compared(rehearsals: Rehearsals) -> None:
    text = job(rehearsals).script().replace("/opt/azcp/python/bin/python3", "/no/such/program")
    outcome = rehearsals.outcome(text, "--nodes", "2", code=ExitCode.PREFLIGHT)
    assert "azcp: the command has ended with" in outcome["workloads"][0]["reason"]
    assert [entry["differences"] for entry in outcome["data"]] == [[], []]
    assert rehearsals.leftovers() == []


def test_the_job_is_ended_once_the_data_is_there(rehearsals: Rehearsals) -> None:
    batch = job(rehearsals)
    text = batch.script().replace(
        "    /opt/azcp/python/bin/python3\n", "    sh\n    -c\n    'exec sleep 1000'\n"
    )
    outcome = rehearsals.outcome(text, "--nodes", "2", "--until", "distributed")
    assert outcome["pods"][0]["phase"] == "CANCELLED"
    assert [entry["differences"] for entry in outcome["data"]] == [[], []]


def test_what_sbatch_refuses_is_told(rehearsals: Rehearsals) -> None:
    text = job(rehearsals, lines=['partition = "none-such"']).script()
    ended = rehearsals.run(text)
    assert ended.returncode == ExitCode.PREFLIGHT
    assert "invalid partition" in ended.stderr
    assert rehearsals.leftovers() == []


def test_a_job_that_does_not_start_in_time_is_taken_away(rehearsals: Rehearsals) -> None:
    text = job(rehearsals).script().replace("#SBATCH --exclusive", "#SBATCH --begin=now+1hour", 1)
    outcome = rehearsals.outcome(text, "--timeout", "5", code=ExitCode.PREFLIGHT)
    assert "BeginTime" in outcome["workloads"][0]["reason"]
    assert outcome["pods"][0]["verdict"] == "not started"
    assert rehearsals.cluster.said("squeue", "--noheader") == ""
