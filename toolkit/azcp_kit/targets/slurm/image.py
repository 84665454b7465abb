"""Where the images of a job lie as files, once they have been imported."""

from __future__ import annotations

from azcp_kit.quoting.image_uri import pinned_image
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.slurm.wish import Wish


def job_images(job: JobSpec) -> list[str]:
    """That of both phases, or those of the first and of the second."""
    return list(dict.fromkeys([job.image, job.command.image]))


def image_file(job: JobSpec, wish: Wish, image: str = "") -> str:
    """On the shared file system, named by the image's digest: another image has another file.

    Args:
        job: whose.
        wish: has the suffix.
        image: that of phase 1 if empty.

    Raises:
        UsageError: the image has no digest.
    """
    return f"{job.slurm.images.rstrip('/')}/{_name(image or job.image, wish)}"


def staged_file(job: JobSpec, wish: Wish, image: str) -> str:
    """The node's own copy."""
    return f"{job.storage.path.rstrip('/')}/.azcp-images/{_name(image, wish)}"


def _name(image: str, wish: Wish) -> str:
    return f"{pinned_image(image).file_stem}{wish.suffix}"
