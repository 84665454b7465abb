"""The generated batch script on a real Slurm, unedited: both phases, and everything that cuts them short."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azcp_kit.azurite import Azurite

from tests.lab.dataset import DataSet, hard_data_set, plain_data_set
from tests.lab.relay import relay
from tests.lab.slurm import Cluster, slurm_cluster
from tests.lab.slurm_tree import put_tree
from tests.lab.upload import account_key, blob_url, upload
from tests.lab.waiting import wait_until
from tests.slurm.batch_job import BatchJob

MIB = 1 << 20
FOUR = ("node1", "node2", "node3", "node4")
# slurmctld looks at time limits every 30 s; then the job ends, waits for its nodes, and runs again: where its
# credential was refused as revoked, 120 s later.
LIMIT_S = 300.0
JOB_S = 120.0
SMALL = hard_data_set(120, chunk_bytes=64 << 10)
SLOW = plain_data_set(*[2 * MIB] * 24)


@pytest.fixture(scope="module")
def site(cluster: Cluster, tree: Path) -> Cluster:
    """Four nodes that have it."""
    put_tree(cluster, tree)
    return cluster


@pytest.fixture(autouse=True)
def _clean(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave no data and no notes to the next test."""
    yield
    if "site" in request.fixturenames:
        cluster: Cluster = request.getfixturevalue("site")
        for node in cluster.nodes:
            shutil.rmtree(cluster.nvme(node) / "data", ignore_errors=True)
        shutil.rmtree(cluster.shared / "notes", ignore_errors=True)


@pytest.fixture
def folder(site: Cluster) -> str:
    """A small source on the shared file system."""
    return directory(site, SMALL, "small")


@pytest.fixture
def slow(site: Cluster) -> str:
    """One that takes its time, as long as the bandwidth is limited."""
    return directory(site, SLOW, "slow")


def directory(cluster: Cluster, data_set: DataSet, name: str) -> str:
    """A source that every node sees."""
    path = cluster.shared / name
    if not path.exists():
        data_set.write_to(path)
    return str(path)


def run(job: BatchJob, *options: str, launch: str = "auto") -> int:
    """Submit the script, wait until it has succeeded; the job's number."""
    number = job.cluster.sbatch(job.script(launch=launch), *options)
    job.cluster.wait(number, "COMPLETED", deadline_s=JOB_S)
    return number


@pytest.mark.parametrize("launch", ["auto", "pmix"])
def test_the_data_of_an_account_is_on_four_nodes_and_then_the_command_runs_on_each(
    site: Cluster, azurite: Azurite, container: str, launch: str
) -> None:
    upload(SMALL, azurite, container, "models/")
    with relay(site.host_address, urlsplit(azurite.endpoint).port or 0) as port:
        endpoint = f"http://{site.host_address}:{port}/{azurite.account}"
        source = blob_url(endpoint, container, "models")
        job = BatchJob(site, source, env={"NCCL_DEBUG": "WARN"}, words=["a b", "$HOME", "'\"\\", "x\r\n", ""])
        number = site.sbatch(job.script(launch=launch), env=account_key(azurite))
        site.wait(number, "COMPLETED", deadline_s=JOB_S)
    job.expect_data(SMALL)
    job.expect_places(FOUR)
    assert all(note["argv"] == list(job.words) for note in job.seen())
    assert all(note["env"]["NCCL_DEBUG"] == "WARN" for note in job.seen())
    log = site.output(number)
    assert f"[list] {len(SMALL.blobs)} files" in log
    by_pmix = launch == "pmix"
    assert ("launched by srun --mpi=pmix" in log) == by_pmix
    told = r"azcp: Slurm's plugin speaks PMIx \d+\.\d.*; the Open MPI of this program speaks PMIx \d+\.\d"
    assert len(re.findall(told, log)) == by_pmix
    assert ("azcp: srun --mpi=list on node1: pmix" in log) == by_pmix
    assert azurite.key not in log


def test_no_key_and_no_environment_is_left_on_a_node(site: Cluster, folder: str) -> None:
    number = run(BatchJob(site, folder))
    for node in site.nodes:
        assert f"azcp-{number}" not in site.run("ls", "/dev/shm", on=node).stdout  # noqa: S108 - of the node


def test_one_node_is_enough(site: Cluster, folder: str) -> None:
    job = BatchJob(site, folder, nodes=1)
    run(job, "--nodelist=node3")
    job.expect_data(SMALL, "node3")
    job.expect_places(["node3"])


def test_it_runs_with_the_environment_of_the_job_alone(site: Cluster, folder: str) -> None:
    job = BatchJob(site, folder, env={"GREETING": "a,b c"})
    run(job, "--export=NONE")
    job.expect_data(SMALL)
    job.expect_places(FOUR)
    assert all(note["env"]["GREETING"] == "a,b c" for note in job.seen())


def test_it_can_be_submitted_from_inside_of_another_allocation(site: Cluster, folder: str) -> None:
    job = BatchJob(site, folder, nodes=2, lines=["cpus-per-task = 4", "gpus = 8"])
    script = site.shared / "inner.sh"
    script.write_text(job.script(), encoding="utf-8")
    outer = (
        "salloc",
        "--quiet",
        "--nodes=1",
        "--ntasks=2",
        "--cpus-per-task=2",
        "--mem-per-cpu=10",
        "--gpus=1",
    )
    number = int(site.said(*outer, "sbatch", "--parsable", str(script)))
    site.wait(number, "COMPLETED", deadline_s=JOB_S)
    hosts = [note["host"] for note in job.seen()]
    job.expect_places(hosts)
    job.expect_data(SMALL, *hosts)
    assert all(len(note["env"]["CUDA_VISIBLE_DEVICES"].split(",")) == 8 for note in job.seen())


@pytest.mark.parametrize(
    ("options", "told"),
    [(["--array=1"], "submit a job of its own"), (["--nodes=2"], "generate it with --set nodes=N")],
)
def test_what_it_was_not_made_for_is_refused_in_one_line(
    site: Cluster, folder: str, options: list[str], told: str
) -> None:
    file = site.shared / "refused.log"
    file.unlink(missing_ok=True)
    number = site.sbatch(BatchJob(site, folder).script(), f"--output={file}", *options)
    assert site.wait(number, "FAILED").exit_code == 2
    log = file.read_text(encoding="utf-8")
    assert told in log
    assert len(log.splitlines()) == 1


def test_two_tasks_on_a_node_are_refused_before_anything_is_read(site: Cluster, folder: str) -> None:
    argv = ["/opt/azcp/bin/azcp-launch", folder, "/mnt/nvme/data", "--every-node"]
    done = site.run("srun", "--nodes=2", "--ntasks=4", *argv)
    assert done.returncode == 2
    assert "4 tasks on 2 nodes" in done.stderr
    assert not (site.nvme("node1") / "data").exists()


def test_the_node_of_a_batch_script_is_not_taken_for_all_of_them(site: Cluster, folder: str) -> None:
    text = f"#!/bin/sh\n/opt/azcp/bin/azcp-launch {folder} /mnt/nvme/data\n"
    number = site.sbatch(text, "--nodes=2")
    assert site.wait(number, "FAILED").exit_code == 2
    assert "no step of the Slurm job, which has 2 nodes" in site.output(number)


def fail(site: Cluster, rank: int) -> None:
    """Have the command of that rank fail."""
    (site.shared / "notes").mkdir()
    (site.shared / "notes" / f"{rank}.json").touch()  # it wants to make that file


def test_the_command_that_fails_ends_the_job_with_its_own_code(site: Cluster, folder: str) -> None:
    fail(site, 0)
    number = site.sbatch(BatchJob(site, folder, nodes=1, limits=["retries = 3"]).script())
    record = site.wait(number, "FAILED", deadline_s=JOB_S)
    assert (record.exit_code, record.restarts) == (1, 0)
    assert "the command has ended with 1" in site.output(number)


def test_a_command_that_fails_on_one_node_ends_all_and_the_log_tells_which_was_first(
    site: Cluster, folder: str
) -> None:
    fail(site, 1)
    number = site.sbatch(BatchJob(site, folder, nodes=2, limits=["retries = 3"]).script())
    record = site.wait(number, "FAILED", deadline_s=JOB_S)
    log = site.output(number)
    # srun gives the highest code, and it kills the other task where that one still runs.
    assert record.exit_code in (1, 143)
    assert ("srun gives the highest code" in log) == (record.exit_code == 143)
    assert record.restarts == 0
    assert re.search("srun: error: node[0-9]: task 1: Exited with exit code 1\n", log)
    assert f"the command has ended with {record.exit_code}" in log


def test_an_mpi_program_has_as_many_ranks_as_it_wants(site: Cluster, folder: str) -> None:
    job = BatchJob(site, folder, nodes=2, form="mpi", lines=["tasks-per-node = 2", "cpus-per-task = 1"])
    run(job)
    seen = job.seen()
    assert [note["env"]["PMIX_RANK"] for note in seen] == ["0", "1", "2", "3"]
    assert [note["env"]["NODE_RANK"] for note in seen] == ["0", "0", "1", "1"]
    job.expect_data(SMALL, *dict.fromkeys(note["host"] for note in seen))


def test_without_pmix_the_other_way_is_taken_and_said_and_an_mpi_program_is_refused(
    slurm: None, tree: Path, tmp_path: Path
) -> None:
    assert slurm is None
    with slurm_cluster(tmp_path / "lab", nodes=2, has_pmix=False, MpiDefault="pmi2") as cluster:
        put_tree(cluster, tree)
        source = directory(cluster, SMALL, "small")
        job = BatchJob(cluster, source, nodes=2)
        log = cluster.output(run(job, launch="pmix"))
        assert "srun --mpi=pmix does not work here" in log
        assert "launched by azcp-launch instead" in log
        own = r"azcp: Slurm has started this task without PMIx; the Open MPI .* speaks PMIx \d+\.\d"
        assert len(re.findall(own, log)) == 1
        assert "[pmix]" not in log
        job.expect_data(SMALL)
        job.expect_places(["node1", "node2"])
        number = cluster.sbatch(BatchJob(cluster, source, nodes=2, form="mpi").script())
        assert cluster.wait(number, "FAILED").exit_code == 8
        assert "needs srun --mpi=pmix, which does not work here" in cluster.output(number)


def finished_files(cluster: Cluster, node: str) -> int:
    """How many files a reader would find there."""
    folder = cluster.nvme(node) / "data"
    return sum(name.startswith("b") for name in os.listdir(folder)) if folder.is_dir() else 0


def test_a_node_that_dies_while_data_comes_is_replaced_and_whole_files_are_kept(
    site: Cluster, tree: Path, slow: str
) -> None:
    limited = ["--max-bandwidth", "4MiB/s"]
    job = BatchJob(site, slow, nodes=3, limits=["retries = 2"], options=limited)
    number = site.sbatch(job.script())
    wait_until(lambda: finished_files(site, "node2") > 1, JOB_S, "files are in place")
    site.kill_node("node2")
    site.wait(number, "PENDING", deadline_s=JOB_S)
    kept = {path: path.stat().st_mtime_ns for path in (site.nvme("node1") / "data").glob("b*")}
    site.start_now(number)
    record = site.wait(number, "COMPLETED", deadline_s=JOB_S)
    assert record.restarts >= 1
    job.expect_data(SLOW, "node1", "node3", "node4")
    assert kept
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    job.expect_places(["node1", "node3", "node4"])
    site.start_node("node2")
    put_tree(site, tree, "node2")


def test_at_its_time_limit_the_job_ends_as_resumable_and_the_next_run_finishes(
    site: Cluster, slow: str
) -> None:
    job = BatchJob(site, slow, nodes=2, limits=["retries = 3"], options=["--max-bandwidth", "1MiB/s"])
    number = site.sbatch(job.script(), "--time=1", "--signal=B:USR1@50")
    wait_until(lambda: site.job(number).restarts == 1, LIMIT_S, "it is queued again")
    site.wait(number, "PENDING", deadline_s=JOB_S)
    assert "phase 1 has ended with 75" in site.output(number)
    site.said("scontrol", "update", f"JobId={number}", "TimeLimit=30")
    record = site.wait(number, "COMPLETED", deadline_s=LIMIT_S)
    assert record.restarts == 1
    log = site.output(number)
    assert log.index("the time limit is near") < log.index("the job is queued again") < log.index("[total]")
    hosts = [note["host"] for note in job.seen()]
    job.expect_data(SLOW, *hosts)
