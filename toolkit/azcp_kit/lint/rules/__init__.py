"""All rules in plain tuples; a rule is a function in a module here, named at that module's end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from azcp_kit.lint.finding import Finding
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.pods import Pod
from azcp_kit.lint.rules import (
    credentials,
    images_and_commands,
    jobs,
    launch_hosts,
    launch_options,
    memory_and_rdma,
    misspelt_keys,
    mpi_settings,
    network_names,
    network_services,
    objects,
    security,
    slurm_containers,
    slurm_job,
    slurm_steps,
    ssh_keys,
    storage,
)
from azcp_kit.lint.sbatch import Batch
from azcp_kit.lint.setup import Setup

PodRule: TypeAlias = Callable[[Pod, Manifest], Iterator[Finding]]
ManifestRule: TypeAlias = Callable[[Manifest], Iterator[Finding]]
SetupRule: TypeAlias = Callable[[Setup], Iterator[Finding]]
BatchRule: TypeAlias = Callable[[Batch], Iterator[Finding]]

POD_RULES: Final[tuple[PodRule, ...]] = (
    *images_and_commands.POD_RULES,
    *ssh_keys.POD_RULES,
    *network_names.POD_RULES,
    *network_services.POD_RULES,
    *memory_and_rdma.POD_RULES,
    *storage.POD_RULES,
    *security.POD_RULES,
    *credentials.POD_RULES,
    *jobs.POD_RULES,
    *launch_hosts.POD_RULES,
)
"""One pod template at a time."""

MANIFEST_RULES: Final[tuple[ManifestRule, ...]] = (
    *objects.MANIFEST_RULES,
    *misspelt_keys.MANIFEST_RULES,
    *network_services.MANIFEST_RULES,
    *credentials.MANIFEST_RULES,
)
"""All objects of the file together."""

SETUP_RULES: Final[tuple[SetupRule, ...]] = (
    *images_and_commands.SETUP_RULES,
    *network_names.SETUP_RULES,
    *storage.SETUP_RULES,
    *credentials.SETUP_RULES,
    *mpi_settings.SETUP_RULES,
    *launch_options.SETUP_RULES,
)
"""What a container or a batch script runs."""

BATCH_RULES: Final[tuple[BatchRule, ...]] = (
    *slurm_job.BATCH_RULES,
    *slurm_steps.BATCH_RULES,
    *slurm_containers.BATCH_RULES,
)
"""A batch script with its directives."""
