"""The headless Service that gives a job's pods their names."""

from __future__ import annotations

from typing import Any

from azcp_runtime.contract.image import SSH_PORT

from azcp_kit.manifest.write import Comment
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.labels import metadata, selector, service_name


def headless_service(job: JobSpec, component: str) -> dict[Any, Any]:
    """Names of pods that are not ready yet are published: they find each other while they initialise."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(job, name=service_name(job)),
        "spec": {
            "clusterIP": "None",
            Comment("The nodes look for each other before any of them is ready."): None,
            "publishNotReadyAddresses": True,
            "selector": selector(job, component),
            "ports": [{"name": "azcp-ssh", "port": SSH_PORT}],
        },
    }
