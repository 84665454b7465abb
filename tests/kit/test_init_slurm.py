"""What `azcp-kit init --for slurm` writes is a job.toml that `generate sbatch` takes."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from azcp_kit.init.purpose import SLURM
from azcp_kit.init.settle import settle
from azcp_kit.init.slurm import SLURM_QUESTIONS, WAYS, slurm_toml
from azcp_kit.init.text import completed
from azcp_kit.spec.read import parse_job, read_job
from azcp_kit.spec.sku import load_skus
from azcp_kit.spec.slurm import Slurm
from azcp_kit.targets.slurm.problems import sbatch_problems
from azcp_kit.targets.slurm.wish import Container, Wish

KIT = str(Path(sys.prefix, "bin", "azcp-kit"))
DIGEST = "0123456789abcdef" * 4
IMAGE = f"reg.example/llama@sha256:{DIGEST}"
SOURCE = "https://weights.blob.core.windows.net/models/llama"
SAID = ("--source", SOURCE, "--image", IMAGE, "--sas-file", "/home/me/sas")


def init(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command without a terminal, in a folder."""
    argv = [KIT, "init", "--for", "slurm", *words]
    return subprocess.run(
        argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )


def uncommented(text: str) -> str:
    """The text with its commented keys and tables in force."""
    return re.sub(r'^# (?=\[|[-\w."/]+ = )', "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("container", Container)
def test_all_that_was_said_is_in_the_file_and_a_script_comes_of_it(
    tmp_path: Path, container: Container
) -> None:
    images = [] if container is Container.NONE else ["--images", "/lustre/images"]
    more = ["--container", container.value, "--partition", "gpu", "--nodes", "16", *images]
    done = init(tmp_path, *SAID, *more)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"next: azcp-kit generate sbatch -f job.toml --container {container} > job.sbatch\n"
    job = read_job(tmp_path / "job.toml", more=lambda job: sbatch_problems(job, Wish(container)))
    assert (job.name, job.image, job.source, job.nodes) == ("llama", IMAGE, SOURCE, 16)
    assert (job.slurm.partition, job.slurm.sas_file) == ("gpu", "/home/me/sas")
    assert job.slurm.images == ("/lustre/images" if images else "")
    argv = [KIT, "generate", "sbatch", "-f", str(tmp_path / "job.toml"), "--container", container.value]
    assert subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("container", Container)
@pytest.mark.parametrize("sku", list(load_skus()))
def test_a_commented_key_can_be_uncommented(sku: str, container: Container, way: str) -> None:
    said = {"sku": sku, "container": container.value, "auth": way}
    text = uncommented(slurm_toml(completed(said, SLURM_QUESTIONS)))
    job = parse_job(text)
    assert job.slurm.account == "research"
    assert job.slurm.tasks_per_node == job.slurm.gpus == load_skus()[sku].gpus
    assert job.nccl_test.threshold == 0.9
    assert job.cyclecloud.project == "azcp-job"
    assert len(job.slurm.mounts) == (container is not Container.NONE)


def test_every_key_of_the_table_is_in_the_file() -> None:
    names = {"image_bytes": "image-size", "grace_s": "grace", "mounts": "[[slurm.mounts]]"}
    said = {"auth": "sas-file", "container": "pyxis"}
    text = slurm_toml(completed(said, SLURM_QUESTIONS))
    keys = [names.get(field.name, field.name.replace("_", "-")) for field in fields(Slurm)]
    assert [key for key in keys if not re.search(rf"^(# )?{re.escape(key)}( =|$)", text, re.MULTILINE)] == []


def test_without_options_it_is_an_example_that_says_so_and_makes_no_script(tmp_path: Path) -> None:
    done = init(tmp_path)
    assert done.returncode == 0
    assert "edit source, auth.kubelet-identity, image before use" in done.stderr
    argv = [KIT, "generate", "sbatch", "-f", str(tmp_path / "job.toml"), "--container", "pyxis"]
    assert subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--queue", "a"), "--queue: not asked with --for slurm"),
        (("--container", "docker"), "--container: 'docker' is none of pyxis"),
        (("--image", "reg.example/a:1"), "--image: reg.example/a:1 is not pinned"),
        (("--container", "none", "--images", "/x"), "--images is for an image's file"),
        (("--partition", "a b"), '--partition: "a b" is no name that Slurm has'),
        (("--images", "x"), '--images: "x" is not absolute'),
        (("--auth-kubelet-identity", "00000000-1111-2222-3333-444444444444"), "--sas-file is a second way"),
        (("--for", "pbs"), "--for pbs is none of kubernetes, slurm"),
        (("--for", "kubernetes"), "--sas-file: not asked with --for kubernetes"),
    ],
)
def test_options_that_cannot_be_are_told_and_nothing_is_written(
    tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    done = init(tmp_path, *SAID, *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_person_is_asked_for_slurm_alone() -> None:
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return {"What the steps run in": "none", "How nodes sign in": "anonymous"}.get(
            prompt.partition(":")[0], ""
        )

    answers = settle({"source": SOURCE}, ask, SLURM)
    assert (answers["container"], answers["auth"]) == ("none", "anonymous")
    told = "\n".join(prompts)
    assert "Partition" in told
    assert not any(word in told for word in ("Kueue", "Security", "Folder that all nodes see", "Client id"))
