"""The security level that a pod needs, and what it is given without a use for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from azcp_kit.lint.containers import Container
from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.pods import Pod

LEVEL: Final = Rule(
    "K601-security-level",
    Severity.NOTE,
    why="a namespace whose pod-security.kubernetes.io/enforce asks for more refuses the pod",
    fix="deploy it where that level is allowed, or take away what is named (security in job.toml)",
)
REFUSED: Final = Rule(
    "K602-refused-by-namespace",
    Severity.ERROR,
    why="the namespace in this file enforces a level that the pod does not keep, so no pod is made",
    fix="take away what is named, or enforce a lower level on the namespace",
)
PRIVILEGED: Final = Rule(
    "K603-privileged-container",
    Severity.WARNING,
    why="it owns the node; the fabric needs no more than IPC_LOCK and the device plugin's resource",
    fix="replace privileged: true by capabilities.add: [IPC_LOCK] and rdma/ib in limits",
)
TOKEN: Final = Rule(
    "K604-token-without-use",
    Severity.NOTE,
    why="the service account's token lies in every container, also for what the image runs",
    fix="set automountServiceAccountToken: false",
)
SERVICE_LINKS: Final = Rule(
    "K605-service-links",
    Severity.NOTE,
    why="every Service of the namespace becomes variables such as NAME_PORT, which programs take for"
    " their own",
    fix="set enableServiceLinks: false",
)

_BASELINE_CAPABILITIES: Final = frozenset(
    {"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
     "SETFCAP", "SYS_CHROOT",      "SETGID", "SETPCAP", "SETUID"}
)  # fmt: skip
_RESTRICTED_VOLUMES: Final = frozenset(
    {"name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected",
     "secret"}
)  # fmt: skip
_LEVELS: Final = ("restricted", "baseline", "privileged")
_READ_AS_OWN: Final = ("azcp", "ucx", "ompi", "nccl", "vllm", "master", "slurm", "ray")


def level(pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """The lowest Pod Security Standard that admits the pod, and why no stricter one does."""
    if not pod.containers:
        return
    beyond_baseline = list(_beyond_baseline(pod))
    beyond_restricted = beyond_baseline or list(_beyond_restricted(pod))
    needed = "privileged" if beyond_baseline else "baseline" if beyond_restricted else "restricted"
    because = f" because of {', '.join(dict.fromkeys(beyond_restricted[:8]))}" if beyond_restricted else ""
    what = f"{pod.title} needs the Pod Security level {needed}{because}"
    enforced = _enforced(pod, manifest)
    if enforced and _LEVELS.index(needed) > _LEVELS.index(enforced):
        yield REFUSED.at(pod.template.line, f"{what}, the namespace enforces {enforced}")
    else:
        nothing_to_do = "" if beyond_restricted else "none is needed: every namespace takes it"
        yield LEVEL.at(pod.template.line, what, fix=nothing_to_do)


def _enforced(pod: Pod, manifest: Manifest) -> str:
    own = pod.owner.at("metadata", "namespace").text
    for namespace in manifest.of_kind("Namespace"):
        enforced = namespace.at("metadata", "labels", "pod-security.kubernetes.io/enforce").text
        if namespace.at("metadata", "name").text == own and enforced in _LEVELS:
            return enforced
    return ""


def _beyond_baseline(pod: Pod) -> Iterator[str]:
    yield from (name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.at(name).is_true)
    if any(volume.at("hostPath") for volume in pod.volumes):
        yield "hostPath"
    for container in pod.containers:
        if container.is_privileged:
            yield "privileged"
        yield from (name for name in container.added_capabilities if name not in _BASELINE_CAPABILITIES)
        if any(port.at("hostPort").number for port in container.node.at("ports").items):
            yield "hostPort"


def _beyond_restricted(pod: Pod) -> Iterator[str]:
    for volume in pod.volumes:
        yield from (f"volume type {named(kind)}" for kind in volume.fields if kind not in _RESTRICTED_VOLUMES)
    for container in pod.containers:
        yield from _container_beyond_restricted(pod, container)


def _container_beyond_restricted(pod: Pod, container: Container) -> Iterator[str]:
    own, common = container.node.at("securityContext"), pod.spec.at("securityContext")
    non_root = own.at("runAsNonRoot") or common.at("runAsNonRoot")
    seccomp = own.at("seccompProfile", "type") or common.at("seccompProfile", "type")
    if not non_root.is_true:
        yield "no runAsNonRoot"
    if not own.at("allowPrivilegeEscalation").is_false:
        yield "no allowPrivilegeEscalation: false"
    if "ALL" not in container.dropped_capabilities:
        yield "capabilities not dropped"
    if set(container.added_capabilities) - {"NET_BIND_SERVICE"}:
        yield "added capabilities"
    if seccomp.text not in {"RuntimeDefault", "Localhost"}:
        yield "no seccompProfile"


def privileged(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """A privileged container among peers."""
    for container in pod.containers:
        if container.is_privileged and pod.is_peer:
            line = container.node.at("securityContext", "privileged").line
            yield PRIVILEGED.at(line, f"container {named(container.name)} is privileged")


def token(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """The token of a service account that nothing in the pod seems to use."""
    uses_identity = pod.labels.get("azure.workload.identity/use") or pod.spec.at("serviceAccountName")
    if pod.spec and not (pod.spec.at("automountServiceAccountToken") or uses_identity or pod.runs("kubectl")):
        yield TOKEN.at(pod.spec.line, f"{pod.title} has the namespace's service account token")


def service_links(pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """Variables made of the Services' names, and those names that a program reads as its settings."""
    in_patch = "enableServiceLinks" in pod.spec.at("podSpecPatch").text
    if not pod.spec or in_patch or pod.spec.at("enableServiceLinks").is_false:
        return
    for service in manifest.of_kind("Service"):
        name = service.at("metadata", "name")
        if name.text.split("-")[0] in _READ_AS_OWN:
            variable = f"{name.text.upper().replace('-', '_')}_PORT"
            what = f"Service {named(name.text)} becomes the variable {named(variable)} in {pod.title}"
            is_read = name.text in _READ_AS_OWN
            yield SERVICE_LINKS.at(name.line, what, severity=Severity.WARNING if is_read else Severity.NOTE)
            return
    yield SERVICE_LINKS.at(pod.spec.line, f"{pod.title} does not set enableServiceLinks: false")


POD_RULES: Final = (level, privileged, token, service_links)
