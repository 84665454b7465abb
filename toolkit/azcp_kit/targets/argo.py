"""Argo Workflow: nodes that distribute among themselves, then a consumer on each of those very nodes."""

from __future__ import annotations

import json
from typing import Any, Final

from azcp_kit.manifest.write import Comment, Document
from azcp_kit.spec.job import JobSpec
from azcp_kit.targets.argv import consumer_argv, host_range
from azcp_kit.targets.containers import Place, consumer, field
from azcp_kit.targets.every_node import Peers, phase_one, ssh_secret_name
from azcp_kit.targets.labels import metadata, pod_metadata, service_name
from azcp_kit.targets.pod import host_network, node_selector, one_per_node, pod_basics
from azcp_kit.targets.service import headless_service
from azcp_kit.targets.volumes import STATE_MOUNT, data_volume, keys_volume, shm_volume, state_volume

_COMPONENT: Final = "argo"
_INDEX: Final = "{{inputs.parameters.index}}"
_NODES: Final = "{{inputs.parameters.nodes}}"
_NODE_FILE: Final = f"{STATE_MOUNT}/node"


def argo(job: JobSpec) -> list[Document]:
    """The Service and the Workflow."""
    limits = job.limits
    spec = {
        "entrypoint": "main",
        **({"activeDeadlineSeconds": limits.deadline_s} if limits.deadline_s else {}),
        **({"ttlStrategy": {"secondsAfterCompletion": limits.ttl_s}} if limits.ttl_s else {}),
        **_basics(job),
        "volumes": [
            volume.as_volume()
            for volume in (
                data_volume(job),
                shm_volume(job),
                state_volume(),
                keys_volume(ssh_secret_name(job)),
            )
        ],
        "templates": [_main(job), _distribute(job), *([_consume(job)] if job.command.run else [])],
    }
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": metadata(job),
        "spec": spec,
    }
    return [headless_service(job, _COMPONENT), workflow]


def host_names(job: JobSpec) -> list[str]:
    """The longest name that a pod will have."""
    return [f"{job.name}-{job.nodes - 1}"]


def _basics(job: JobSpec) -> dict[Any, Any]:
    """What the pods have in common, in the names that a Workflow has for it."""
    basics = pod_basics(job, token=True)
    for key in [key for key in basics if isinstance(key, Comment) or key == "enableServiceLinks"]:
        del basics[key]
    if "priorityClassName" in basics:
        basics["podPriorityClassName"] = basics.pop("priorityClassName")
    return {**basics, **host_network(job), **node_selector(job)}


def _main(job: JobSpec) -> dict[str, Any]:
    sequence = {"withSequence": {"count": str(job.nodes)}}
    index = {"name": "index", "value": "{{item}}"}
    tasks: list[dict[Any, Any]] = [
        {"name": "distribute", "template": "distribute", "arguments": {"parameters": [index]}, **sequence}
    ]
    if job.command.run:
        nodes = {"name": "nodes", "value": "{{tasks.distribute.outputs.parameters.node}}"}
        tasks.append(
            {
                "name": "consume",
                "template": "consume",
                "depends": "distribute",
                Comment("The names of the nodes that now hold the data."): None,
                "arguments": {"parameters": [index, nodes]},
                **sequence,
            }
        )
    return {"name": "main", "dag": {"tasks": tasks}}


def _distribute(job: JobSpec) -> dict[Any, Any]:
    peers = Peers(
        host_range(job.name, job.nodes, service_name(job)),
        {"value": _INDEX},
        own_name={"value": _INDEX},
        options=("--node-file", _NODE_FILE),
    )
    container = phase_one(job, peers)
    container["env"] = [*container["env"], {"name": "NODE_NAME", "valueFrom": field("spec.nodeName")}]
    return {
        "name": "distribute",
        "inputs": {"parameters": [{"name": "index"}]},
        "outputs": {"parameters": [{"name": "node", "valueFrom": {"path": _NODE_FILE}}]},
        "metadata": pod_metadata(job, _COMPONENT),
        "affinity": one_per_node(job, _COMPONENT),
        **_retries(job),
        Comment("Each pod has the name under which the others look for it."): None,
        "podSpecPatch": json.dumps(_named(job)),
        "container": _unnamed(container),
    }


def _consume(job: JobSpec) -> dict[Any, Any]:
    place = Place({"value": _INDEX}, f"{job.name}-0.{service_name(job)}")
    volumes = [data_volume(job), shm_volume(job)]
    # The list is JSON already, and stands where a list belongs: only its quotes in the template must go.
    patch = json.dumps({**_named(job), "affinity": _on_nodes(job)}).replace(f'"{_NODES}"', _NODES)
    return {
        "name": "consume",
        "inputs": {"parameters": [{"name": "index"}, {"name": "nodes"}]},
        "metadata": pod_metadata(job, _COMPONENT),
        Comment("One consumer on each of the nodes that distributed."): None,
        "podSpecPatch": patch,
        "container": _unnamed(consumer(job, consumer_argv(job), volumes, place)),
    }


def _named(job: JobSpec) -> dict[str, Any]:
    return {"hostname": f"{job.name}-{_INDEX}", "subdomain": service_name(job), "enableServiceLinks": False}


def _on_nodes(job: JobSpec) -> dict[str, Any]:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": _NODES}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {
        **one_per_node(job, _COMPONENT),
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms},
    }


def _retries(job: JobSpec) -> dict[str, Any]:
    """A node alone cannot try again: its peers have ended. They all fail, and all of them are retried."""
    return {"retryStrategy": {"limit": str(job.limits.retries)}} if job.limits.retries else {}


def _unnamed(container: dict[Any, Any]) -> dict[Any, Any]:
    """A template's one container is called main by Argo itself."""
    return {key: value for key, value in container.items() if key != "name"}
