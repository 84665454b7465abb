"""Documents, pods and places for the tests of a rehearsal, as short as a test can use them."""

from __future__ import annotations

from typing import Any, Final

import yaml
from azcp_kit.rehearse.documents import Document, read_documents
from azcp_kit.rehearse.environment import Place
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.model import Identity, PodPlan
from azcp_kit.rehearse.plan import Plan, make_plan
from azcp_kit.rehearse.pod import Pod, read_pod_plan

IDENTITY: Final = Identity(
    title="llama-1",
    name="llama-1-x7k2p",
    namespace="ml",
    uid="0b5b4c2e",
    host="llama-1",
    subdomain="llama",
    node="node-1",
    index=1,
    labels={"app": "llama", "batch.kubernetes.io/job-completion-index": "1"},
    annotations={"note": "n"},
)
PLACE: Final = Place(IDENTITY, "172.20.0.3", "172.20.0.1", "default", 4, 8 << 30)
MAIN: Final[dict[str, Any]] = {"name": "main", "image": "train:1", "command": ["/bin/true"]}


def document(text: str) -> Document:
    """The only document of a manifest."""
    (found,) = read_documents(text)
    return found


def pod(spec: dict[str, Any], identity: Identity = IDENTITY) -> Pod:
    """A pod with that specification; with one container where it has none."""
    return read_pod_plan(PodPlan(identity, Fields({"containers": [MAIN], **spec}, "spec")))


def plan(*documents: dict[str, Any], nodes: int | None = None) -> Plan:
    """The plan of a manifest."""
    return make_plan(yaml.safe_dump_all(documents), nodes)
