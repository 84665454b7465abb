"""Every target by its name: what it makes, what its pods are called, and what it cannot do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from azcp_kit.manifest.write import Document
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets import argo, indexed_job, jobset, mpijob, serving, statefulset, volcano, warmup


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of manifest.

    Args:
        documents: what it makes of a job.
        host_names: the longest names that its pods will have; none where no node looks for another.
        is_shared: whether data must outlive the pod that brings it.
        needs_command: whether it makes no sense without one.
        has_mpi_form: whether it has a launcher that the user's mpirun can run on.
        takes_command: whether a command runs afterwards.
        needs_secret: whether the job's key pair must be there before.
        has_queue: whether a queue admits it.
        longest_name: of the job, where the kind makes a label of it; the longest that a label may be if not.
        ends: whether it ends by itself, so that a deadline, retries and a time to live mean something.
        is_alone: whether its nodes do not look for each other.
    """

    documents: Callable[[JobSpec], Sequence[Document]]
    host_names: Callable[[JobSpec], Sequence[str]] | None = None
    is_shared: bool = False
    needs_command: bool = False
    has_mpi_form: bool = False
    takes_command: bool = True
    needs_secret: bool = False
    has_queue: bool = True
    longest_name: int = 63
    ends: bool = True
    is_alone: bool = False


TARGETS: Final[Mapping[str, Target]] = MappingProxyType(
    {
        "mpijob": Target(mpijob.mpijob, mpijob.host_names, has_mpi_form=True),
        "job": Target(indexed_job.indexed_job, indexed_job.host_names, needs_secret=True),
        "statefulset": Target(
            statefulset.statefulset,
            statefulset.host_names,
            needs_command=True,
            needs_secret=True,
            # The label controller-revision-hash is the name, a dash and ten characters.
            longest_name=52,
            ends=False,
        ),
        "jobset": Target(jobset.jobset, jobset.host_names, needs_secret=True),
        "volcano": Target(volcano.volcano, volcano.host_names, needs_secret=True),
        "argo": Target(argo.argo, argo.host_names, is_shared=True, needs_secret=True, has_queue=False),
        "serving": Target(serving.serving, needs_command=True, ends=False, is_alone=True),
        "warmup": Target(
            warmup.warmup, warmup.host_names, is_shared=True, takes_command=False, is_alone=True
        ),
    }
)
