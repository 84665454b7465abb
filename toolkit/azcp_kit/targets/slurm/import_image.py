"""`azcp-kit generate import`: a script that makes one shared file of an image, once and as a whole."""

from __future__ import annotations

from azcp_kit.quoting.image_uri import apptainer_uri, enroot_uri, pinned_image
from azcp_kit.render import render
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.slurm.image import image_file
from azcp_kit.targets.slurm.wish import Container, Wish


def import_script(job: JobSpec, wish: Wish) -> str:
    """The script.

    Raises:
        UsageError: the image has no digest.
    """
    image = pinned_image(job.image)
    is_apptainer = wish.container is Container.APPTAINER
    return render(
        "slurm/import.sh.j2",
        job=job,
        container=wish.container.value,
        image=image_file(job, wish),
        uri=apptainer_uri(image) if is_apptainer else enroot_uri(image),
    )
