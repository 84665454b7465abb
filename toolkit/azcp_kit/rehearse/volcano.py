"""What Volcano (batch.volcano.sh/v1alpha1) makes of a Job: the pods of its tasks, and what its plugins add.

As pkg/controllers/job of its releases 1.8 on does it, plugins svc, env, ssh and mpi.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from azcp_kit.rehearse.documents import Document
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.identity import check_name, make_identity
from azcp_kit.rehearse.key_pair import make_key_pair
from azcp_kit.rehearse.model import Group, Made, Moment, Need, PodPlan, Service, Wish, Workload
from azcp_kit.rehearse.own_kinds import with_spec

_HOSTS_PATH: Final = "/etc/volcano"
_KEY_FILES: Final = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
_ROOT_SSH: Final = "/root/.ssh"
_RESTARTING: Final = frozenset({"RestartJob", "RestartTask", "RestartPod"})
_DEFAULT_RETRIES: Final = 3


def read_volcano_job(document: Document, _nodes: int) -> Workload:
    """The tasks of a Volcano Job.

    Raises:
        UsageError: it has none, or one of its names is none.
    """
    check_name(document.name, document.fields.where)
    spec = document.fields.at("spec")
    if not spec.each("tasks"):
        raise spec.error("tasks", "is empty")
    groups: list[Group] = []
    for position, task in enumerate(spec.each("tasks")):
        groups.append(_group(document, task, position, sum(len(group.pods) for group in groups)))
    deciding = [name for name, task in _named(spec) if "CompleteJob" in _actions(task, ("TaskCompleted",))]
    if deciding:
        groups = [group if group.name in deciding else replace(group, wish=Wish.SERVES) for group in groups]
    actions = _failure_actions(spec)
    return Workload(
        document.title,
        tuple(groups),
        tuple(deciding) or tuple(group.name for group in groups),
        any_decides=bool(deciding),
        restarts=spec.number("maxRetry", _DEFAULT_RETRIES) if actions & _RESTARTING else 0,
        services=_services(document),
        secrets=_secrets(document),
        config_maps=_config_maps(document),
        notices=_notices(actions),
    )


def plugins(spec: Fields) -> dict[str, tuple[str, ...]]:
    """The plugins with their arguments; mpi brings svc and ssh along."""
    own = spec.at("plugins")
    found = {name: own.words(name) for name in own.raw}
    if found.keys() & {"mpi", "pytorch", "tensorflow", "ray"}:
        found.setdefault("svc", ())
    if "mpi" in found:
        found.setdefault("ssh", ())
    return found


def argument(words: tuple[str, ...], name: str, default: str) -> str:
    """The value of --NAME=VALUE, as Go's flags read it."""
    position = 0
    while position < len(words):
        key, is_set, value = words[position].lstrip("-").partition("=")
        if key == name:
            following = words[position + 1 : position + 2]
            takes_next = not is_set and following and not following[0].startswith("-")
            return value if is_set else following[0] if takes_next else "true"
        position += 1
    return default


def task_hosts(document: Document, task: Fields, name: str) -> list[str]:
    """The names of a task's pods, in the order of their indexes."""
    pod = task.at("template", "spec")
    subdomain = pod.text("subdomain") or document.name
    if pod.text("hostname"):
        return [f"{pod.text('hostname')}.{subdomain}"]
    return [f"{document.name}-{name}-{index}.{subdomain}" for index in range(task.number("replicas", 0))]


def _named(spec: Fields) -> Iterator[tuple[str, Fields]]:
    for position, task in enumerate(spec.each("tasks")):
        yield task.text("name") or f"default{position}", task


def _group(document: Document, task: Fields, position: int, first_node: int) -> Group:
    spec = document.fields.at("spec")
    name = task.text("name") or f"default{position}"
    pods = []
    for index in range(task.number("replicas", 0)):
        title = f"{document.name}-{name}-{index}"
        template = _completed(document, name, task.at("template"), index)
        labels = {
            "volcano.sh/job-name": document.name,
            "volcano.sh/job-namespace": document.namespace,
            "volcano.sh/task-spec": name,
            "volcano.sh/task-index": str(index),
            "volcano.sh/queue-name": spec.text("queue", "default"),
        }
        identity = make_identity(
            title,
            title,
            template,
            document.namespace,
            index=index,
            node=f"node-{first_node + index}",
            labels=labels,
            annotations={**labels, "volcano.sh/template-uid": f"{document.name}-{name}"},
        )
        pods.append(PodPlan(identity, template.at("spec")))
    needs = tuple(Need(other, Moment.READY) for other in task.at("dependsOn").words("name"))
    policies = _actions(spec, ("PodFailed", "*")) | _actions(task, ("PodFailed", "*"))
    return Group(name, tuple(pods), Wish.ENDS, is_patient=not policies, needs=needs)


def _completed(document: Document, task: str, template: Fields, index: int) -> Fields:
    spec, pod = document.fields.at("spec"), template.at("spec")
    found = plugins(spec)
    changes: dict[str, Any] = {"restartPolicy": pod.text("restartPolicy", "Always")}
    if "svc" in found:
        changes["subdomain"] = pod.text("subdomain") or document.name
    environment = list(_variables(document, found, task, index))
    volumes, mounts = _volumes(document, found)
    for kind in ("initContainers", "containers"):
        changes[kind] = [
            {
                **container.raw,
                "env": [*(entry.raw for entry in container.each("env")), *environment],
                "volumeMounts": [*(mount.raw for mount in container.each("volumeMounts")), *mounts],
            }
            for container in pod.each(kind)
        ]
    changes["volumes"] = [*(volume.raw for volume in pod.each("volumes")), *volumes]
    return with_spec(template, changes)


def _variables(
    document: Document, found: dict[str, tuple[str, ...]], task: str, index: int
) -> Iterator[dict[str, Any]]:
    if "env" in found:
        yield {"name": "VK_TASK_INDEX", "value": str(index)}
        yield {"name": "VC_TASK_INDEX", "value": str(index)}
    if "svc" in found and argument(found["svc"], "inject-hosts-env", "true") != "false":
        for key in _hosts(document):
            if key.startswith("VC_"):
                source = {"configMapKeyRef": {"name": f"{document.name}-svc", "key": key}}
                yield {"name": key, "valueFrom": source}
    master = argument(found.get("mpi", ()), "master", "master")
    if "mpi" in found and task == master:
        worker = argument(found["mpi"], "worker", "worker")
        hosts = [
            host
            for name, t in _named(document.fields.at("spec"))
            if name == worker
            for host in task_hosts(document, t, name)
        ]
        yield {"name": "MPI_HOST", "value": ",".join(hosts)}


def _volumes(
    document: Document, found: dict[str, tuple[str, ...]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    if "svc" in found:
        name = f"{document.name}-svc"
        volumes.append({"name": name, "configMap": {"name": name}})
        mounts.append({"name": name, "mountPath": _HOSTS_PATH})
    if "ssh" in found:
        name, path = f"{document.name}-ssh", argument(found["ssh"], "ssh-key-file-path", _ROOT_SSH)
        items = [{"key": key, "path": f".ssh/{key}"} for key in _KEY_FILES]
        mode = 0o600 if path == _ROOT_SSH else 0o644
        volumes.append({"name": name, "secret": {"secretName": name, "items": items, "defaultMode": mode}})
        mounts.append({"name": name, "mountPath": path, "subPath": ".ssh"})
    return volumes, mounts


def _hosts(document: Document) -> dict[str, str]:
    """The content of the plugin svc's ConfigMap."""
    content: dict[str, str] = {}
    for name, task in _named(document.fields.at("spec")):
        hosts, key = task_hosts(document, task, name), name.replace("-", "_")
        content[f"{key}.host"] = "\n".join(hosts)
        content[f"VC_{key.upper()}_HOSTS"] = ",".join(hosts)
        content[f"VC_{key.upper()}_NUM"] = str(len(hosts))
    return content


def _services(document: Document) -> tuple[Service, ...]:
    found = plugins(document.fields.at("spec"))
    if "svc" not in found:
        return ()
    publishes = argument(found["svc"], "publish-not-ready-addresses", "false") != "false"
    selector = {"volcano.sh/job-name": document.name, "volcano.sh/job-namespace": document.namespace}
    return (Service(document.namespace, document.name, selector, True, publishes),)


def _config_maps(document: Document) -> tuple[Made, ...]:
    if "svc" not in plugins(document.fields.at("spec")):
        return ()
    content = {key: text.encode() for key, text in _hosts(document).items()}
    return (Made(document.namespace, f"{document.name}-svc", content),)


def _secrets(document: Document) -> tuple[Made, ...]:
    found = plugins(document.fields.at("spec"))
    if "ssh" not in found:
        return ()
    port, keys = argument(found["ssh"], "ssh-port", "22"), make_key_pair()
    config = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
    for name, task in _named(document.fields.at("spec")):
        for host in task_hosts(document, task, name):
            config += f"Host {host.partition('.')[0]}\n  HostName {host}\n  Port {port}\n"
    content = {
        "id_rsa": keys.private,
        "id_rsa.pub": keys.public,
        "authorized_keys": keys.public,
        "config": config.encode(),
    }
    return (Made(document.namespace, f"{document.name}-ssh", content),)


def _actions(fields: Fields, events: tuple[str, ...]) -> frozenset[str]:
    """What its policies do on one of the events."""
    return frozenset(
        policy.text("action")
        for policy in fields.each("policies")
        if {policy.text("event"), *policy.words("events")} & set(events)
    )


def _failure_actions(spec: Fields) -> frozenset[str]:
    found = _actions(spec, ("PodFailed", "*"))
    for _, task in _named(spec):
        found |= _actions(task, ("PodFailed", "*"))
    return found


def _notices(actions: frozenset[str]) -> tuple[str, ...]:
    if actions:
        return ()
    return ("no policy for PodFailed: a failed pod does not end the others",)
