"""A tree of an image on the shared file system, bound to its place on nodes without containers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from azcp_kit.tree.folder import NAME, put_folder
from azcp_runtime.contract.image import PREFIX

from tests.lab.dataset import hard_data_set
from tests.lab.slurm import slurm_cluster
from tests.slurm.batch_job import BatchJob

JOB_S = 120.0
DATA = hard_data_set(60, chunk_bytes=64 << 10)


def sent(tree: Path) -> Iterator[bytes]:
    """The tree as the engine would send it."""
    argv = ["tar", "-c", "-C", str(tree.parent), f"--transform=s,^{tree.name},{NAME},S", tree.name]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as tar:
        assert tar.stdout is not None
        while piece := tar.stdout.read(1 << 20):
            yield piece
    assert tar.returncode == 0


def test_one_shared_tree_is_enough_for_all_nodes(slurm: None, tree: Path, tmp_path: Path) -> None:
    assert slurm is None
    with slurm_cluster(tmp_path / "lab", nodes=2) as cluster:
        place = cluster.shared / "azcp-1.0"
        put_folder(sent(tree), place)
        for node in cluster.nodes:
            for argv in (
                ("mount", "-n", "-t", "tmpfs", "tmpfs", str(Path(PREFIX).parent)),
                ("mkdir", PREFIX),
                ("mount", "-n", "--bind", str(place), PREFIX),
            ):
                done = cluster.run(*argv, on=node)
                assert done.returncode == 0, done.stderr
        DATA.write_to(cluster.shared / "source")
        job = BatchJob(cluster, str(cluster.shared / "source"), nodes=2)
        number = cluster.sbatch(job.script())
        cluster.wait(number, "COMPLETED", deadline_s=JOB_S)
        job.expect_data(DATA)
        job.expect_places(list(cluster.nodes))
