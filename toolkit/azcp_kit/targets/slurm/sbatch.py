"""`azcp-kit generate sbatch`: one batch script for both phases, in one allocation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from azcp_runtime.contract.image import BIN, PREFIX

from azcp_kit.render import render
from azcp_kit.spec.job import Form, JobSpec
from azcp_kit.targets.slurm.directives import directives
from azcp_kit.targets.slurm.image import image_file, job_images, staged_file
from azcp_kit.targets.slurm.mounts import DEVICES, job_mounts, written
from azcp_kit.targets.slurm.steps import command_words, launch_words, rank_words, srun_words, variable_words
from azcp_kit.targets.slurm.wish import Container, Launch, Wish


@dataclass(frozen=True, slots=True)
class _ImageFile:
    """The file of an image.

    Args:
        path: on the shared file system.
        staged: the node's own copy; empty if it is used where it is.
    """

    path: str
    staged: str

    @classmethod
    def of(cls, job: JobSpec, wish: Wish, image: str) -> _ImageFile:
        """Where it lies."""
        return cls(image_file(job, wish, image), staged_file(job, wish, image) if job.slurm.stage else "")


def sbatch_script(job: JobSpec, wish: Wish) -> str:
    """The script.

    Raises:
        UsageError: something of the job cannot be said in it.
    """
    has_container = wish.container is not Container.NONE
    return render(
        "slurm/sbatch.sh.j2",
        job=job,
        directives=directives(job),
        needs=list(_needs(job, wish)),
        container=wish.container.value,
        images=[_ImageFile.of(job, wish, image) for image in job_images(job)] if has_container else [],
        mounts=[written(wish.container, mount) for _, mount in job_mounts(job)] if has_container else [],
        devices=written(wish.container, DEVICES) if has_container else "",
        by_pmix=wish.launch is Launch.PMIX,
        is_mpi=job.command.form is Form.MPI,
        bin=BIN,
        srun=srun_words(job, 1),
        # Only srun must know of rails; azcp-launch starts them itself.
        srun_rails=srun_words(job, job.most_rails) if job.most_rails > 1 else [],
        srun_ranks=srun_words(job, job.slurm.tasks_per_node),
        launch=launch_words(job),
        ranks=rank_words(job),
        variables=variable_words(job),
        command=command_words(job),
        gpu_option=_gpu_option(job),
    )


def _needs(job: JobSpec, wish: Wish) -> Iterator[str]:
    """What must be there before."""
    if wish.container is Container.NONE:
        yield f"{PREFIX} on every node, which `azcp-kit tree` brings out of an injected image"
    else:
        files = "the image's file" if len(job_images(job)) == 1 else "the files of both images"
        yield f"{files}, which the script of `azcp-kit generate import` makes"
    if "--require-rdma" in launch_words(job):
        yield "RDMA between the nodes: over TCP it ends with 8, unless distribute.options has --allow-tcp"
    yield f"the nodes' own disks mounted at {job.storage.path}"
    if not (job.auth.kubelet_identity or job.slurm.sas_file or not job.source.startswith("http")):
        yield "a credential in the environment of sbatch, such as AZCP_SAS, or a container that is public"


def _gpu_option(job: JobSpec) -> str:
    """Of Apptainer, which brings the driver's libraries in."""
    if not job.slurm.gpus:
        return ""
    return "--rocm" if job.resources.gpu_resource.startswith("amd.com/") else "--nv"
