"""`azcp-kit generate import`: a script that makes a shared file of each image, once and as a whole."""

from __future__ import annotations

from azcp_kit.quoting.image_uri import apptainer_uri, enroot_uri, pinned_image
from azcp_kit.render import render
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.slurm.image import image_file, job_images
from azcp_kit.targets.slurm.wish import Container, Wish


def import_script(job: JobSpec, wish: Wish) -> str:
    """The script.

    Raises:
        UsageError: an image has no digest.
    """
    uri = apptainer_uri if wish.container is Container.APPTAINER else enroot_uri
    return render(
        "slurm/import.sh.j2",
        job=job,
        container=wish.container.value,
        images=[(image_file(job, wish, image), uri(pinned_image(image))) for image in job_images(job)],
    )
