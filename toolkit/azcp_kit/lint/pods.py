"""The pod templates of a manifest, whatever kind they stand in, with what their owner makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from azcp_kit.lint.containers import FABRIC, PEER_PROGRAMS, Container, read_container
from azcp_kit.lint.located import Located

_TEMPLATE_PATHS: Final = {
    "Pod": (),
    "Deployment": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
_REPLICAS: Final = {"Deployment": "replicas", "StatefulSet": "replicas", "Job": "parallelism"}


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod template."""

    kind: str
    """The owner's kind; `VolcanoJob` for the Job of Volcano."""
    owner: Located
    """The document that it stands in."""
    role: str
    """Launcher or Worker of an MPIJob, the task of a Volcano Job, the replicated job of a JobSet."""
    part: Located
    """What holds the template: the document, the replica spec, the task or the replicated job."""
    template: Located
    replicas: int | None
    """None where the manifest does not say, or nodes decide."""
    containers: tuple[Container, ...]

    @property
    def name(self) -> str:
        """The owner's name, with five characters for those that generateName adds; "" if it has none."""
        generated = self.owner.at("metadata", "generateName").text
        return self.owner.at("metadata", "name").text or (f"{generated}xxxxx" if generated else "")

    @property
    def title(self) -> str:
        """How messages call it."""
        return f"{self.kind} {self.role}".strip()

    @property
    def spec(self) -> Located:
        """The pod's own fields."""
        return self.template.at("spec")

    @property
    def labels(self) -> Mapping[str, Located]:
        """The labels that its pods get."""
        return self.template.at("metadata", "labels").fields

    @property
    def volumes(self) -> tuple[Located, ...]:
        """Its volumes, without those of a StatefulSet's claims."""
        return self.spec.at("volumes").items

    def volume(self, name: str) -> Located:
        """The volume of that name, absent if there is none."""
        found = (volume for volume in self.volumes if volume.at("name").text == name)
        return next(found, Located(self.spec.line))

    @property
    def has_host_network(self) -> bool:
        """Whether it is on the node's own network."""
        return self.spec.at("hostNetwork").is_true

    @property
    def is_peer(self) -> bool:
        """Whether it works together with others of its kind, as far as one can see."""
        return self.kind == "MPIJob" or any(
            c.has_fabric_resource or c.runs(*PEER_PROGRAMS) or "IPC_LOCK" in c.added_capabilities
            for c in self.containers
        )

    def runs(self, *programs: str) -> bool:
        """Whether one of its containers runs one of the programs."""
        return any(container.runs(*programs) for container in self.containers)

    def user_of(self, container: Container) -> int | None:
        """The uid that the manifest asks for; 1 stands for any that is not root, None for the image's."""
        for context in (container.node.at("securityContext"), self.spec.at("securityContext")):
            if context.at("runAsUser").number is not None:
                return context.at("runAsUser").number
            if context.at("runAsNonRoot").is_true:
                return 1
        return None

    def host_path_of(self, volume: str) -> str:
        """The path on the node that a volume is, "" if it is none."""
        return self.volume(volume).at("hostPath", "path").text

    def is_on_fabric(self, container: Container) -> bool:
        """Whether the container is given the devices of the fabric."""
        device_paths = (self.host_path_of(mount.volume) for mount in container.mounts)
        return any(FABRIC.fullmatch(name) for name in container.resources()) or any(
            path.startswith("/dev/infiniband") for path in device_paths
        )


def pods_of(document: Located, config_maps: Mapping[str, Mapping[str, Located]]) -> Iterator[Pod]:
    """All pod templates of one document.

    Args:
        document: one object.
        config_maps: the ConfigMaps of the same file by name, which may hold the scripts that pods run.
    """
    kind = document.at("kind").text
    api = document.at("apiVersion").text
    if kind == "Job" and api.startswith("batch.volcano.sh/"):
        for task in document.at("spec", "tasks").items:
            name, replicas = task.at("name").text, task.at("replicas").number
            yield _pod(("VolcanoJob", name), document, task, task.at("template"), replicas or 1, config_maps)
    elif kind in _TEMPLATE_PATHS:
        template = document.at(*_TEMPLATE_PATHS[kind])
        yield _pod((kind, ""), document, document, template, _replicas(document, kind), config_maps)
    elif kind == "MPIJob":
        for role, part in document.at("spec", "mpiReplicaSpecs").fields.items():
            replicas = part.at("replicas").number or 1
            yield _pod((kind, role), document, part, part.at("template"), replicas, config_maps)
    elif kind == "JobSet":
        for part in document.at("spec", "replicatedJobs").items:
            template = part.at("template", "spec", "template")
            pods = part.at("template", "spec", "parallelism").number or 1
            replicas = pods * (part.at("replicas").number or 1)
            yield _pod((kind, part.at("name").text), document, part, template, replicas, config_maps)
    else:
        yield from _of_argo(document, config_maps)


def _of_argo(document: Located, config_maps: Mapping[str, Mapping[str, Located]]) -> Iterator[Pod]:
    """A template of Argo has the fields of a pod's spec and of its metadata side by side."""
    spec = document.at("spec", "workflowSpec") or document.at("spec")
    for part in spec.at("templates").items:
        main = part.at("container") or part.at("script")
        if not main:
            continue
        fields = {
            **{key: value for key, value in spec.fields.items() if key not in {"templates", "entrypoint"}},
            **part.fields,
            "containers": Located(main.line, "sequence", items=(main,)),
            "volumes": Located(
                part.at("volumes").line, "sequence",
                items=(*spec.at("volumes").items, *part.at("volumes").items),
            ),
        }  # fmt: skip
        pod_spec = Located(part.line, "mapping", fields=fields)
        both = {"metadata": part.at("metadata"), "spec": pod_spec}
        template = Located(part.line, "mapping", fields=both)
        role = part.at("name").text
        yield _pod((document.at("kind").text, role), document, part, template, None, config_maps)


def _replicas(document: Located, kind: str) -> int | None:
    field = _REPLICAS.get(kind)
    if field is None:
        return 1 if kind == "Pod" else None
    value = document.at("spec", field)
    return value.number if value else 1


def _pod(
    kind_and_role: tuple[str, str],
    owner: Located,
    part: Located,
    template: Located,
    replicas: int | None,
    config_maps: Mapping[str, Mapping[str, Located]],
) -> Pod:
    kind, role = kind_and_role
    spec = template.at("spec")
    files = {
        volume.at("name").text: config_maps.get(volume.at("configMap", "name").text, {})
        for volume in spec.at("volumes").items
    }
    containers = (
        *(read_container(node, files, is_init=True) for node in spec.at("initContainers").items),
        *(read_container(node, files, is_init=False) for node in spec.at("containers").items),
    )
    return Pod(kind, owner, role, part, template, replicas, containers)
