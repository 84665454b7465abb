"""The generated all-reduce test runs on a real Slurm as it is, and its log needs no options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from azcp_kit.nccl.command import NcclReportCommand, run_nccl_report
from azcp_kit.quoting.toml import toml_string
from azcp_kit.spec.read import parse_job
from azcp_kit.spec.sku import find_sku
from azcp_kit.targets.nccl_test import nccl_test_problems, nccl_test_script
from azcp_kit.targets.slurm.wish import read_wish

from tests.lab.slurm import slurm_cluster
from tests.lab.slurm.all_reduce import program

SKU = find_sku("Standard_ND96asr_v4")
JOB_S = 120.0
JOB = """\
name = "fabric"
image = "unused"
source = "/unused"
dest = "/unused/x"
nodes = 2
sku = "Standard_ND96asr_v4"
[storage]
path = "/unused"
[nccl-test]
binary = {binary}
topology = {topology}
modules = []
env = {{ NCCL_OWN = "two words, $HOME 'and' more" }}
"""


def test_it_runs_unedited_with_the_masks_the_gpus_and_the_variables_of_the_size(
    slurm: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert slurm is None
    with slurm_cluster(tmp_path / "lab", nodes=2, cpus=SKU.cpus, gpus=SKU.gpus) as cluster:
        binary, topology = cluster.shared / "my tests" / "all_reduce_perf", cluster.shared / "a topo.xml"
        records = cluster.shared / "records"
        program(binary, records)
        topology.write_text("<system/>", encoding="utf-8")
        (cluster.shared / "fabric.sbatch").write_text(script(binary, topology), encoding="utf-8")
        # What a shell inside another allocation would hand on, and a comma that --export would split at.
        left_over = {"SLURM_MEM_PER_CPU": "100", "SLURM_TRES_PER_TASK": "cpu=2", "NCCL_OWN": "the job's own"}
        job = cluster.sbatch(cluster.shared / "fabric.sbatch", "--export=ALL", env=left_over)
        cluster.wait(job, "COMPLETED", deadline_s=JOB_S)
        log = cluster.shared / f"fabric-nccl-{job}.log"
        said = [json.loads((records / f"{rank}.json").read_text()) for rank in range(16)]
        run_nccl_report(NcclReportCommand(str(log)))

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["ranks", "16", "on", "2", "nodes", "16", "ok"] in lines
    assert ["bus", "bandwidth,", "16.0", "GiB", "186.60", "GB/s", "167.9", "GB/s", "ok"] in lines
    for rank, each in enumerate(said):
        env = each["env"]
        assert each["node"] == f"node{1 + rank // 8}"
        assert (env["SLURM_LOCALID"], env["PMIX_RANK"]) == (f"{rank % 8}", f"{rank}")
        # Slurm hands the whole list to each task, which takes the one of its own number on the node.
        masks = env["SLURM_CPU_BIND_LIST"].split(",")
        assert int(masks[rank % 8], 16) == int(SKU.task_masks[rank % 8], 16)
        assert env["CUDA_VISIBLE_DEVICES"] == "0,1,2,3,4,5,6,7"
        assert env["SLURM_CPUS_PER_TASK"] == "12"
        assert env["NCCL_TOPO_FILE"] == str(topology)
        assert env["NCCL_OWN"] == "two words, $HOME 'and' more"
        assert env["NCCL_IB_PCI_RELAXED_ORDERING"] == "1"
        assert each["argv"][1:] == [
            "-b",
            "8",
            "-e",
            "17179869184",
            "-f",
            "2",
            "-g",
            "1",
            "-n",
            "20",
            "-c",
            "0",
        ]


def script(binary: Path, topology: Path) -> str:
    """The generated script."""
    wish = read_wish("none", "")
    text = JOB.format(binary=toml_string(str(binary)), topology=toml_string(str(topology)))
    return nccl_test_script(parse_job(text, more=lambda job: nccl_test_problems(job, wish)), wish)
