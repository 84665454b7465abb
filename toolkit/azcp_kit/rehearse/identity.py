"""Who a pod is: its names as its controller gives them, and the node it would be put on."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from typing import Any, Final

from azcp_runtime.contract import UsageError

from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.model import Identity
from azcp_kit.shown import shown

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_NAME: Final = re.compile(
    r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
)
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes makes the random end of a name from."""

NODE_LABEL: Final = "kubernetes.io/hostname"
_SPACE: Final = uuid.UUID("5f4c2d3e-54f0-4b5f-9f2e-0d1b8b8f6c11")


def check_name(name: str, title: str) -> str:
    """The name of an object.

    Raises:
        UsageError: the API server would refuse it.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(shown(f"no name of an object: {title}'{name}'"), remedy="use a-z, 0-9 and -")
    return name


def is_host_label(text: str) -> bool:
    """Whether it can be a host name or one part of it."""
    return _LABEL.fullmatch(text) is not None


def suffix(seed: str, length: int = 5) -> str:
    """Letters as Kubernetes appends them, the same for the same seed."""
    digest = hashlib.sha256(seed.encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:length])


def make_identity(
    title: str,
    name: str,
    template: Fields,
    namespace: str,
    *,
    host: str = "",
    index: int = 0,
    node: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Identity:
    """A pod's identity.

    Args:
        title: for the operator.
        name: of the pod.
        template: its metadata and spec.
        namespace: where its controller is.
        host: the host name that the controller gives where the template has none; the pod's name if empty.
        index: its place among its like.
        node: where it goes unless the template says it.
        labels: what the controller adds.
        annotations: the same.

    Raises:
        UsageError: one of its names is none.
    """
    spec, metadata = template.at("spec"), template.at("metadata")
    own_host = spec.text("hostname") or host or name[:63].rstrip("-.")
    subdomain = spec.text("subdomain")
    for what, text in (("hostname", own_host), ("subdomain", subdomain)):
        if text and not is_host_label(text):
            raise spec.error(what, f"is no DNS label of at most 63 characters: '{text}'")
    return Identity(
        title=title,
        name=check_name(name, template.where),
        namespace=namespace,
        uid=str(uuid.uuid5(_SPACE, f"{namespace}/{name}")),
        host=own_host,
        subdomain=subdomain,
        node=chosen_node(spec) or node or f"node-{index}",
        index=index,
        labels={**metadata.strings("labels"), **(labels or {})},
        annotations={**metadata.strings("annotations"), **(annotations or {})},
    )


def chosen_node(spec: Fields) -> str:
    """The one node that a pod can only run on; empty where several would do."""
    by_selector = spec.at("nodeSelector").raw.get(NODE_LABEL)
    required = spec.at("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return spec.text("nodeName") or str(by_selector or "") or _required_node(required)


def _required_node(required: Fields) -> str:
    for term in required.each("nodeSelectorTerms"):
        for rule in (*term.each("matchExpressions"), *term.each("matchFields")):
            values: list[Any] = list(rule.words("values"))
            if rule.text("key") in (NODE_LABEL, "metadata.name") and len(values) == 1:
                return str(values[0])
    return ""
