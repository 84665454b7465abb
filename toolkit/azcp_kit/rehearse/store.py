"""The Secrets, ConfigMaps and Services that pods of a manifest refer to."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from azcp_kit.rehearse.documents import Document
from azcp_kit.rehearse.model import Made, Service, Workload

Content = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Store:
    """What the API server would hold; by namespace and name."""

    secrets: Mapping[tuple[str, str], Content] = field(default_factory=dict, repr=False)
    config_maps: Mapping[tuple[str, str], Content] = field(default_factory=dict, repr=False)
    services: tuple[Service, ...] = ()

    def with_secrets(self, made: Iterable[Made]) -> Store:
        """The same with more Secrets; one that is already there stays."""
        return replace(self, secrets={**_by_name(made), **self.secrets})


def read_store(documents: Iterable[Document], workloads: Iterable[Workload]) -> Store:
    """What the manifest holds, and what the controllers of its workloads make.

    Raises:
        UsageError: a field has another type than it should have.
    """
    documents, workloads = tuple(documents), tuple(workloads)
    core = [document for document in documents if not document.group]
    own_secrets = [
        Made(d.namespace, d.name, {**_decoded(d, "data"), **_plain(d, "stringData")})
        for d in core
        if d.kind == "Secret"
    ]
    own_maps = [
        Made(d.namespace, d.name, {**_plain(d, "data"), **_decoded(d, "binaryData")})
        for d in core
        if d.kind == "ConfigMap"
    ]
    return Store(
        # What a controller makes under a name of its own, it does not share.
        secrets=_by_name([*own_secrets, *(made for load in workloads for made in load.secrets)]),
        config_maps=_by_name([*own_maps, *(made for load in workloads for made in load.config_maps)]),
        services=(
            *(read_service(d) for d in core if d.kind == "Service"),
            *(service for load in workloads for service in load.services),
        ),
    )


def read_service(document: Document) -> Service:
    """A Service of the manifest."""
    spec = document.fields.at("spec")
    return Service(
        namespace=document.namespace,
        name=document.name,
        selector=spec.strings("selector"),
        is_headless=spec.text("clusterIP") == "None",
        publishes_not_ready=spec.flag("publishNotReadyAddresses"),
    )


def _by_name(made: Iterable[Made]) -> dict[tuple[str, str], Content]:
    return {(entry.namespace, entry.name): entry.content for entry in made}


def _plain(document: Document, name: str) -> dict[str, bytes]:
    return {key: text.encode() for key, text in document.fields.strings(name).items()}


def _decoded(document: Document, name: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for key, text in document.fields.strings(name).items():
        try:
            found[key] = base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            raise document.fields.at(name).error(key, "is no base64") from None
    return found
