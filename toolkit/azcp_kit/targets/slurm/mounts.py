"""What a container of the job sees of its node, in the words of each tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from azcp_kit.quoting.mounts import apptainer_bind, enroot_mount, pyxis_mount
from azcp_kit.spec.job import JobSpec
from azcp_kit.spec.slurm import Mount
from azcp_kit.targets.slurm.wish import Container

DEVICES: Final = Mount("/dev/infiniband", "/dev/infiniband")
"""Mounted only where it exists."""

_WRITERS: Final[Mapping[Container, Callable[[str, str, Sequence[str]], str]]] = MappingProxyType(
    {
        Container.PYXIS: pyxis_mount,
        Container.ENROOT: enroot_mount,
        Container.APPTAINER: apptainer_bind,
    }
)


def job_mounts(job: JobSpec) -> list[tuple[str, Mount]]:
    """Each with the key of job.toml that it comes from."""
    found = [("storage.path", Mount(job.storage.path, job.storage.path))]
    if job.slurm.sas_file:
        found.append(("slurm.sas-file", Mount(job.slurm.sas_file, job.slurm.sas_file, ("ro",))))
    if not job.source.startswith(("http://", "https://")):
        found.append(("source", Mount(job.source, job.source, ("ro",))))
    found += [(f"slurm.mounts[{at}]", mount) for at, mount in enumerate(job.slurm.mounts)]
    return found


def written(container: Container, mount: Mount) -> str:
    """The mount as the tool takes it.

    Raises:
        UsageError: it has no way to say one of the paths.
    """
    return _WRITERS[container](mount.source, mount.target, mount.flags)
