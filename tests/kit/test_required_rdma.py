"""A job that asks for RDMA ends where it would get TCP; a rehearsal tells that it leaves that out."""

from __future__ import annotations

from pathlib import Path

import pytest
from azcp_kit.rehearse.account import Emulator
from azcp_kit.rehearse.fabric import requires_rdma, text_without_rdma, words_without_rdma
from azcp_kit.rehearse.plan import make_plan
from azcp_kit.rehearse.slurm.edits import Edits, edited
from azcp_kit.rehearse.slurm.script import read_script
from azcp_kit.rehearse.slurm.unshown import unshown_anywhere, unshown_on_containers
from azcp_kit.spec.problems import SpecError
from azcp_kit.spec.read import parse_job
from azcp_kit.targets.command import generate
from azcp_kit.targets.slurm.sbatch import sbatch_script
from azcp_kit.targets.slurm.wish import Container, Launch, Wish

OPTION = "--require-rdma"
EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = """\
name = "llama"
image = "registry.example/app:azcp"
source = "https://acct.blob.core.windows.net/models/llama"
dest = "/mnt/nvme/llama"
command = { run = ["serve", "--port", "1"] }
storage = { path = "/mnt/nvme" }
"""
RDMA = 'resources = { rdma = "rdma/ib" }\n'
SKU = 'sku = "Standard_ND96isr_H100_v5"\n'
TCP = 'distribute = { options = ["--allow-tcp"] }\n'


def manifest(kind: str, *lines: str, nodes: int = 4) -> str:
    """A manifest of a job with further lines."""
    return generate(kind, parse_job(f"nodes = {nodes}\n{''.join(lines)}{HEAD}"))


def batch(*lines: str, launch: Launch = Launch.AUTO) -> str:
    """A batch script of a job with further lines."""
    return sbatch_script(parse_job(f"nodes = 4\n{''.join(lines)}{HEAD}"), Wish(Container.NONE, launch))


@pytest.mark.parametrize("kind", ["mpijob", "job", "statefulset", "jobset", "volcano", "argo"])
def test_a_manifest_whose_pods_ask_for_rdma_requires_it(kind: str) -> None:
    asked = manifest(kind, RDMA)
    assert asked.count(f"- {OPTION}\n") == 1
    assert "Needs RDMA between the nodes: over TCP it ends with 8" in asked
    for text in (manifest(kind), manifest(kind, SKU), manifest(kind, RDMA, TCP)):
        assert OPTION not in text
        assert "over TCP" not in text


@pytest.mark.parametrize("kind", ["serving", "warmup"])
def test_nodes_that_do_not_know_each_other_have_nothing_to_require(kind: str) -> None:
    text = (
        manifest(kind, RDMA) if kind == "serving" else generate(kind, parse_job(f"nodes = 4\n{RDMA}{HEAD}"))
    )
    assert OPTION not in text


def test_one_node_has_no_fabric() -> None:
    assert OPTION not in manifest("job", RDMA, nodes=1)


def test_a_batch_script_requires_what_its_vm_size_has() -> None:
    assert batch(SKU).count(f"    {OPTION}\n") == 1
    assert batch(SKU, launch=Launch.PMIX).count(f"    {OPTION}\n") == 2
    assert batch(RDMA).count(f"    {OPTION}\n") == 1
    for text in (batch(), batch(SKU, TCP)):
        assert OPTION not in text


def test_what_was_said_already_is_not_said_twice() -> None:
    said = f'distribute = {{ options = ["{OPTION}"] }}\n'
    assert manifest("job", RDMA, said).count(f"- {OPTION}\n") == 1
    with pytest.raises(SpecError, match="has both --require-rdma and --allow-tcp"):
        parse_job(f'nodes = 4\ndistribute = {{ options = ["{OPTION}", "--allow-tcp"] }}\n{HEAD}')


@pytest.mark.parametrize("name", ["mpijob", "job", "jobset", "volcano"])
def test_a_rehearsal_of_a_manifest_lists_what_it_leaves_out(name: str) -> None:
    plan = make_plan((EXAMPLES / "aks" / f"{name}.yaml").read_text(encoding="utf-8"), None)
    (line,) = [line for line in plan.unshown if line.startswith(OPTION)]
    assert "there is only TCP between containers" in line
    (task, *_) = plan.tasks
    argv = (*task.container.command, *task.container.args)
    assert OPTION in argv
    assert OPTION not in words_without_rdma(argv)


def test_a_manifest_without_it_has_nothing_to_leave_out() -> None:
    assert not [line for line in make_plan(manifest("job"), None).unshown if OPTION in line]


@pytest.mark.parametrize("form", ["none", "pyxis", "enroot", "apptainer", "pmix"])
def test_a_batch_script_is_run_without_it_on_containers_and_with_it_on_slurm(form: str) -> None:
    script = read_script((EXAMPLES / "slurm" / f"{form}.sbatch").read_text(encoding="utf-8"))
    copy = edited(script, Edits(2, Emulator("http://10.1.2.3:10000", "a2V5"), "", {}, ""))
    assert OPTION in copy
    assert OPTION not in text_without_rdma(copy)
    assert [line for line in unshown_on_containers(script) if line.startswith(f"{OPTION}: left out")]
    assert not [line for line in unshown_anywhere(script) if OPTION in line]


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["/opt/azcp/bin/azcp-launch", "s", "d", OPTION, "--wait", "9"], "azcp-launch s d --wait 9"),
        (["azcp-launch", "s", "d", OPTION, "--", "train", OPTION], f"azcp-launch s d -- train {OPTION}"),
        (["sh", "-c", f"azcp-launch s d {OPTION}; train"], "sh -c azcp-launch s d ; train"),
        (["sh", "-c", f"azcp-distribute s d '{OPTION}'\ntrain"], "sh -c azcp-distribute s d \ntrain"),
        (["sh", "-c", f"azcp-distribute s d {OPTION}-not"], f"sh -c azcp-distribute s d {OPTION}-not"),
        (["sh", "-c", f"train {OPTION}"], f"sh -c train {OPTION}"),
    ],
)
def test_only_our_own_option_is_left_out(words: list[str], left: str) -> None:
    assert " ".join(words_without_rdma(words)).removeprefix("/opt/azcp/bin/") == left
    assert requires_rdma(words) == (words_without_rdma(words) != tuple(words))
