"""Where the image of a job lies as a file, once it has been imported."""

from __future__ import annotations

from azcp_kit.quoting.image_uri import pinned_image
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.slurm.wish import Wish


def image_file(job: JobSpec, wish: Wish) -> str:
    """On the shared file system, named by the image's digest: another image has another file.

    Raises:
        UsageError: the image has no digest.
    """
    return f"{job.slurm.images.rstrip('/')}/{_name(job, wish)}"


def staged_file(job: JobSpec, wish: Wish) -> str:
    """The node's own copy."""
    return f"{job.storage.path.rstrip('/')}/.azcp-images/{_name(job, wish)}"


def _name(job: JobSpec, wish: Wish) -> str:
    return f"{pinned_image(job.image).file_stem}{wish.suffix}"
