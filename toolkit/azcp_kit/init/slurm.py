"""What `azcp-kit init --for slurm` asks, and what it writes: the tables that its scripts are made of."""

from __future__ import annotations

from typing import Final

from azcp_kit.init.questions import AUTH, EXAMPLE_REGISTRY, EXAMPLES, QUESTIONS, Answers, Question
from azcp_kit.init.sku_notes import sku_notes
from azcp_kit.init.text import examples_in, storage_path
from azcp_kit.render import render
from azcp_kit.spec.read import More
from azcp_kit.spec.sku import find_sku
from azcp_kit.targets.slurm.problems import sbatch_problems
from azcp_kit.targets.slurm.wish import Container, Launch, Wish

CONTAINER: Final = "container"
"""Of `azcp-kit generate sbatch`; no key of job.toml, but what else is asked follows from it."""

WAYS: Final = ("kubelet-identity", "sas-file", "anonymous")
"""How nodes can prove who they are."""

_SHARED: Final = "/shared/images"


def slurm_toml(answers: Answers) -> str:
    """The file's text.

    Raises:
        UsageError: the VM size is not known, or a text cannot be said in TOML.
    """
    sku = find_sku(answers["sku"])
    return render(
        "job/slurm.toml.j2",
        answers=answers,
        nodes=int(answers["nodes"]),
        sku=sku,
        sku_notes=sku_notes(sku),
        way=answers[AUTH],
        has_container=answers[CONTAINER] != Container.NONE,
        storage_path=storage_path(answers["dest"]),
        examples=examples_in(answers),
    )


def slurm_checks(answers: Answers) -> More:
    """What must hold for the script of this container."""
    named = answers.get(CONTAINER, "")
    container = Container(named) if named in list(Container) else Container.PYXIS
    return lambda job: sbatch_problems(job, Wish(container, Launch.AUTO))


def _common(*keys: str) -> list[Question]:
    """Questions that Kubernetes has too."""
    return [next(question for question in QUESTIONS if question.key == key) for key in keys]


def _container(text: str) -> str:
    return "" if text in list(Container) else f"is none of {', '.join(Container)}"


def _way(text: str) -> str:
    return "" if text in WAYS else f"is none of {', '.join(WAYS)}"


def _image(answers: Answers) -> str:
    return f"{EXAMPLE_REGISTRY}{answers['name']}@sha256:{'0' * 64}"


SLURM_QUESTIONS: Final = (
    *_common("source", "nodes", "name"),
    Question(
        CONTAINER,
        "--container",
        f"What the steps run in: {', '.join(Container)}",
        lambda _: Container.PYXIS.value,
        check=_container,
    ),
    Question("image", "--image", "Image that azcp-kit build made, as NAME@sha256:DIGEST", _image),
    Question(
        "slurm.images",
        "--images",
        "Folder that all nodes see, for the image's file",
        lambda _: _SHARED,
        applies=lambda said: said[CONTAINER] != Container.NONE,
        unasked="is for an image's file, which --container none has not",
    ),
    *_common("dest", "sku"),
    Question("slurm.partition", "--partition", "Partition, or nothing for the site's own", lambda _: ""),
    Question(AUTH, "", f"How nodes sign in: {', '.join(WAYS)}", lambda _: WAYS[0], check=_way),
    Question(
        "auth.kubelet-identity",
        "--auth-kubelet-identity",
        "Client id of the VMs' own identity",
        lambda _: EXAMPLES["auth.kubelet-identity"],
        applies=lambda said: said[AUTH] == "kubelet-identity",
    ),
    Question(
        "slurm.sas-file",
        "--sas-file",
        "File with the SAS that all nodes see",
        lambda said: f"/shared/secrets/{said['name']}.sas",
        applies=lambda said: said[AUTH] == "sas-file",
        unasked="is a second way to prove who the nodes are: give one",
    ),
)
