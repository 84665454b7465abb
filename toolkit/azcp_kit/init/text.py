"""The text of a job.toml from the answers: pure, and read back before anybody sees it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from azcp_runtime.contract import ENV_SAS

from azcp_kit.init.questions import AUTH, AUTH_WAYS, EXAMPLE_REGISTRY, EXAMPLES, QUESTIONS, Answers, Question
from azcp_kit.init.sku_notes import sku_notes
from azcp_kit.quoting.shell import shell_word
from azcp_kit.render import render
from azcp_kit.spec.job import Security, StorageKind
from azcp_kit.spec.sku import find_sku

# Where node set-ups mount the striped NVMe disks; azhpc-images' setup_nvme.sh does the second.
_MOUNT_POINTS: Final = (PurePosixPath("/mnt/nvme"), PurePosixPath("/mnt/resource_nvme"))


def completed(answers: Answers, questions: Sequence[Question] = QUESTIONS) -> dict[str, str]:
    """The answers, and the default wherever there is none."""
    full: dict[str, str] = {}
    for question in questions:
        if question.applies(full):
            said = answers.get(question.key)
            full[question.key] = question.default(full) if said is None else said
    return full


def examples_in(answers: Answers) -> tuple[str, ...]:
    """The keys whose values are only examples."""
    found = [key for key, example in EXAMPLES.items() if answers.get(key) == example]
    return (*found, *(["image"] if answers["image"].startswith(EXAMPLE_REGISTRY) else []))


def job_toml(answers: Answers) -> str:
    """The file's text.

    Raises:
        UsageError: the VM size is not known, or a text cannot be said in TOML.
    """
    sku = find_sku(answers["sku"])
    is_privileged = answers["security"] == Security.PRIVILEGED
    kind = StorageKind.HOST_PATH if is_privileged else StorageKind.EPHEMERAL
    return render(
        "job/job.toml.j2",
        name=answers["name"],
        image=answers["image"],
        source=answers["source"],
        dest=answers["dest"],
        nodes=int(answers["nodes"]),
        sku=sku.name,
        sku_notes=sku_notes(sku),
        security=answers["security"],
        queue=answers["queue"],
        auth=[(way, answers[f"auth.{way}"]) for way in AUTH_WAYS if f"auth.{way}" in answers],
        auth_notes=tuple(_auth_notes(answers)),
        anonymous=answers[AUTH] == "anonymous",
        gpus=sku.gpus,
        gpu_resource=sku.gpu_resource,
        is_privileged=is_privileged,
        hcas=sku.hcas,
        pod_memory_gib=sku.pod_memory_gib,
        shm_gib=sku.shm_gib,
        storage_kind=kind.value,
        storage_path=storage_path(answers["dest"]),
        examples=examples_in(answers),
    )


def storage_path(dest: str) -> str:
    """The mount point that holds the destination."""
    path = PurePosixPath(dest)
    for mount_point in _MOUNT_POINTS:
        if mount_point in path.parents:
            return str(mount_point)
    return str(path if path.parent == PurePosixPath("/") else path.parent)


def _auth_notes(answers: Answers) -> Iterator[str]:
    way = answers[AUTH]
    if way == "identity":
        yield "Client id of a workload identity with the role Storage Blob Data Reader."
        yield "`azcp-kit generate identity` makes it, from resource-group, cluster and identity-name."
    elif way == "kubelet-identity":
        yield "Client id of the identity that the nodes have, with the role Storage Blob Data Reader."
    elif way == "secret":
        word = shell_word(answers["auth.secret"])
        yield f"Name of a Secret with the key {ENV_SAS}; secret-key names another. To make it from a file:"
        yield f"kubectl create secret generic {word} --from-file={ENV_SAS}=FILE"
    else:
        yield "The container can be read by anybody."
