"""Deployment: each pod downloads the model for itself before the server begins."""

from __future__ import annotations

from typing import Final

from azcp_kit.manifest.write import Comment, Document
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.argv import alone_argv, consumer_argv
from azcp_kit.targets.containers import consumer, distributor
from azcp_kit.targets.labels import metadata, selector
from azcp_kit.targets.pod import node_pod
from azcp_kit.targets.volumes import data_volume, shm_volume, state_volume

_COMPONENT: Final = "serving"
_FIRST_START_S: Final = 7200


def serving(job: JobSpec) -> list[Document]:
    """One Deployment. Its pods come and go one by one, so each of them downloads alone."""
    volumes = [data_volume(job), shm_volume(job), state_volume()]
    template = node_pod(
        job,
        _COMPONENT,
        init=[distributor(job, alone_argv(job), volumes)],
        containers=[consumer(job, consumer_argv(job), volumes[:2], None)],
        volumes=volumes,
    )
    spec = {
        "replicas": job.nodes,
        "selector": {"matchLabels": selector(job, _COMPONENT)},
        Comment("A node has room for one pod: the old one ends before its successor begins."): None,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        Comment("A first start downloads everything."): None,
        "progressDeadlineSeconds": _FIRST_START_S,
        "template": template,
    }
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(job, queue=True), "spec": spec}
    ]
