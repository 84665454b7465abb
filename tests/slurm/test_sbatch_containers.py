"""The generated script in pyxis, enroot and Apptainer, by stand-ins that enter a real root file system."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from azcp_kit.spec.read import parse_job
from azcp_kit.targets.slurm.import_image import import_script
from azcp_kit.targets.slurm.problems import import_problems
from azcp_kit.targets.slurm.wish import read_wish
from azcp_runtime.contract.image import PYTHON

from tests.lab import rootfs
from tests.lab.bases import cache_folder
from tests.lab.dataset import hard_data_set
from tests.lab.requirements import missing
from tests.lab.slurm import Cluster
from tests.lab.slurm.machine import PATH
from tests.lab.slurm_tools import REGISTRY, install_tools, write_image
from tests.lab.slurm_tree import layer_of
from tests.slurm.batch_job import BatchJob

JOB_S = 120.0
DATA = hard_data_set(120, chunk_bytes=64 << 10)
OTHER = hashlib.sha256(b"the image of the command").hexdigest()
OTHER_IMAGE = f"registry.example:5000/team/own@sha256:{OTHER}"
DIGEST = hashlib.sha256(b"the image").hexdigest()
IMAGE = f"registry.example:5000/team/train:azcp@sha256:{DIGEST}"
# What images set, and what breaks a foreign MPI.
HOSTILE = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "NCCL_DEBUG": "INFO",
    "FROM_IMAGE": "a b",
    "AZCP_STATE_DIR": "/no/such/folder",
    "OPAL_PREFIX": "/opt/hpcx/ompi",
    "OMPI_MCA_pml": "none-such",
    "UCX_TLS": "none-such",
    "PYTHONHOME": "/nowhere",
    "PMIX_INSTALL_PREFIX": "/opt/hpcx/pmix",
}
# As those of NVIDIA's images: it says something, and then runs what it was given.
ENTRYPOINT = ("/bin/sh", "-c", 'export ENTERED=yes; exec "$@"', "entry")
CONTAINERS = ("pyxis", "enroot", "apptainer")


@dataclass(frozen=True)
class Tools:
    """A cluster whose nodes have them.

    Args:
        cluster: the nodes.
        env: of sbatch, with the tools first on its PATH.
    """

    cluster: Cluster
    env: Mapping[str, str]

    def job(self, name: str, *lines: str) -> BatchJob:
        """A job that also sees the folder of its notes."""
        shared = self.cluster.shared
        mounts = (
            f'mounts = [{{ source = "{shared}/notes" }}, {{ source = "{shared}/source", flags = ["ro"] }}]'
        )
        images = f'images = "{shared}/images {name}"'
        return BatchJob(
            self.cluster,
            f"{shared}/source",
            image=IMAGE,
            lines=[images, *lines, mounts],
            env={"NCCL_DEBUG": "WARN", "A": "x,y:z $HOME '\"\n"},
            words=["a b", "$HOME", "x\r\n"],
        )

    def imported(self, job: BatchJob, container: str) -> str:
        """Run the import script on the controller; what it says."""
        wish = read_wish(container, "")
        script = import_script(parse_job(job.text(), more=lambda job: import_problems(job, wish)), wish)
        done = self.cluster.run("bash", "-s", env=self.env, text=script)
        assert done.returncode == 0, done.stderr
        return done.stderr


@pytest.fixture(scope="module")
def tools(cluster: Cluster, tree: Path) -> Iterator[Tools]:
    """Nodes with all three, and a registry with one image: Debian, the kit's tree, a hostile environment."""
    if reason := rootfs.lacking():
        missing("slurm", f"no root file system can be made: {reason}")
    shared = cluster.shared
    (shared / "notes").mkdir()
    DATA.write_to(shared / "source")
    base = shared / "base"
    base.mkdir()
    subprocess.run(["tar", "-xf", rootfs.rootfs_tar("bookworm", cache_folder()), "-C", base], check=True)
    (shared / "registry").mkdir()
    write_image(shared / "registry" / DIGEST, [layer_of(cluster, tree), base], HOSTILE, ENTRYPOINT)
    # Of the kit's tree it has the interpreter alone, for what notes the command's place.
    bare = shared / ".bare" / Path(PYTHON).parents[1].relative_to("/")
    tree_python = layer_of(cluster, tree) / Path(PYTHON).parents[1].relative_to("/")
    shutil.copytree(tree_python, bare, symlinks=True, copy_function=os.link)
    own = HOSTILE | {"FROM_IMAGE": "another"}
    write_image(shared / "registry" / OTHER, [shared / ".bare", base], own, ENTRYPOINT)
    path = f"{install_tools(shared / 'bin')}:{PATH}"
    yield Tools(cluster, {"PATH": path, REGISTRY: str(shared / "registry"), "NCCL_DEBUG": "of the shell"})
    shutil.rmtree(base)


@pytest.fixture(autouse=True)
def _clean(tools: Tools) -> Iterator[None]:
    """Leave no data and no notes to the next test."""
    yield
    for node in tools.cluster.nodes:
        for name in ("data", ".azcp-images"):
            shutil.rmtree(tools.cluster.nvme(node) / name, ignore_errors=True)
    for note in (tools.cluster.shared / "notes").iterdir():
        note.unlink()


@pytest.mark.parametrize("stage", [False, True])
@pytest.mark.parametrize("container", CONTAINERS)
def test_both_phases_run_in_the_image_whatever_its_environment_says(
    tools: Tools, container: str, stage: bool
) -> None:
    job = tools.job(container, f"stage = {str(stage).lower()}", 'image-size = "1MiB"')
    tools.imported(job, container)
    number = tools.cluster.sbatch(job.script(container), env=tools.env)
    tools.cluster.wait(number, "COMPLETED", deadline_s=JOB_S)
    job.expect_data(DATA)
    job.expect_places(tools.cluster.nodes)
    for note in job.seen():
        assert note["argv"] == list(job.words)
        env = note["env"]
        assert {name: env[name] for name in job.env} == dict(job.env)
        assert (env["ENTERED"], env["FROM_IMAGE"], env["UCX_TLS"]) == ("yes", "a b", "none-such")
    assert any(tools.cluster.nvme("node1").glob(".azcp-images/*")) == stage
    for node in tools.cluster.nodes:
        assert f"azcp-{number}" not in tools.cluster.run("ls", "/dev/shm", on=node).stdout  # noqa: S108


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_command_runs_in_an_image_of_its_own_which_needs_nothing_of_the_kit(
    tools: Tools, container: str
) -> None:
    job = replace(tools.job(container, 'image-size = "1MiB"'), own_image=OTHER_IMAGE)
    assert f"own-{OTHER}" in tools.imported(job, container)
    number = tools.cluster.sbatch(job.script(container), env=tools.env)
    tools.cluster.wait(number, "COMPLETED", deadline_s=JOB_S)
    job.expect_data(DATA)
    job.expect_places(tools.cluster.nodes)
    for note in job.seen():
        assert note["argv"] == list(job.words)
        assert {name: note["env"][name] for name in job.env} == dict(job.env)
        assert (note["env"]["ENTERED"], note["env"]["FROM_IMAGE"]) == ("yes", "another")


@pytest.mark.parametrize("container", CONTAINERS)
def test_pmix_reaches_into_the_image(tools: Tools, container: str) -> None:
    job = tools.job(container, 'image-size = "1MiB"')
    tools.imported(job, container)
    number = tools.cluster.sbatch(job.script(container, "pmix"), env=tools.env)
    tools.cluster.wait(number, "COMPLETED", deadline_s=JOB_S)
    job.expect_data(DATA)
    assert "phase 1 is launched by" in tools.cluster.output(number)


@pytest.mark.parametrize("container", CONTAINERS)
def test_without_the_image_the_job_ends_at_once_and_says_what_makes_it(tools: Tools, container: str) -> None:
    number = tools.cluster.sbatch(tools.job("none-such").script(container), env=tools.env)
    assert tools.cluster.wait(number, "FAILED").exit_code == 8
    assert "run the script that azcp-kit generate import prints" in tools.cluster.output(number)


@pytest.mark.parametrize("container", ["enroot", "apptainer"])
def test_an_image_is_imported_once_and_as_a_whole(tools: Tools, container: str) -> None:
    job = tools.job(f"import {container}", 'image-size = "1MiB"')
    folder = tools.cluster.shared / f"images import {container}"
    suffix = "sif" if container == "apptainer" else "sqsh"
    assert f"train-{DIGEST}.{suffix}" in tools.imported(job, container)
    assert "is there already" in tools.imported(job, container)
    assert sorted(path.name for path in folder.iterdir()) == [
        f"train-{DIGEST}.{suffix}",
        f"train-{DIGEST}.{suffix}.lock",
    ]


def test_no_import_begins_without_room_for_it(tools: Tools) -> None:
    job = tools.job("large", 'image-size = "1000000TiB"')
    wish = read_wish("enroot", "")
    script = import_script(parse_job(job.text()), wish)
    done = tools.cluster.run("bash", "-s", env=tools.env, text=script)
    assert done.returncode == 8
    assert "are needed" in done.stderr
    assert not list((tools.cluster.shared / "images large").glob("*.part"))


def test_the_image_is_what_the_tests_think(tools: Tools) -> None:
    job = tools.job("look", 'image-size = "1MiB"')
    tools.imported(job, "enroot")
    (file,) = (tools.cluster.shared / "images look").glob("*.sqsh")
    done = tools.cluster.run("enroot", "start", str(file), "touch", "/file", on="node1", env=tools.env)
    assert "Read-only file system" in done.stderr
    done = tools.cluster.run(
        "enroot", "start", "--rw", str(file), PYTHON, "--version", on="node1", env=tools.env
    )
    assert done.stdout.startswith("Python 3.13")
