"""A whole manifest as the rules see it: its objects, and the pod templates in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from azcp_runtime.contract import UsageError

from azcp_kit.lint.located import Located, parse_documents
from azcp_kit.lint.pods import Pod, pods_of

MOST_OBJECTS: Final = 1000
"""Rules that compare each with each take seconds for so many."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """All objects of a file."""

    documents: tuple[Located, ...]
    by_kind: Mapping[str, tuple[Located, ...]]
    duplicates: tuple[tuple[int, str], ...]
    pods: tuple[Pod, ...]
    by_owner: Mapping[int, tuple[Pod, ...]]
    """The pod templates of each object, by its identity."""
    strays: tuple[Located, ...] = ()
    """Documents without apiVersion or kind, which are no objects."""

    def of_kind(self, kind: str) -> tuple[Located, ...]:
        """The objects of that kind."""
        return self.by_kind.get(kind, ())

    def pods_beside(self, pod: Pod) -> tuple[Pod, ...]:
        """All pod templates of the same object, the pod itself among them."""
        return self.by_owner[id(pod.owner)]

    def worker_of(self, launcher: Pod) -> Pod:
        """The pod that the ranks of a launcher run in: an MPIJob's Worker, else the pod itself."""
        workers = (pod for pod in self.pods_beside(launcher) if pod.role == "Worker")
        is_launcher = launcher.kind == "MPIJob" and launcher.role == "Launcher"
        return next(workers, launcher) if is_launcher else launcher

    def launcher_of(self, worker: Pod) -> Pod:
        """The pod whose mpirun starts the ranks of a worker: an MPIJob's Launcher, else the pod itself."""
        launchers = (pod for pod in self.pods_beside(worker) if pod.role == "Launcher")
        return next(launchers, worker) if worker.kind == "MPIJob" else worker


def read_manifest(text: str) -> Manifest:
    """Read a manifest of one or several documents.

    Raises:
        UsageError: it is no YAML or JSON, or holds no object of Kubernetes.
    """
    parsed = parse_documents(text)
    documents = tuple(found for document in parsed.documents for found in _objects(document))
    strays = tuple(document for document in parsed.documents if _is_stray(document))
    if not documents and not any(_says_what_it_is(stray) for stray in strays):
        raise UsageError(
            "no object of Kubernetes and no batch script",
            cause="an object has apiVersion and kind, a script begins with #!",
        )
    if len(documents) > MOST_OBJECTS:
        raise UsageError(f"more than {MOST_OBJECTS} objects", remedy="lint them in several files")
    by_kind: dict[str, tuple[Located, ...]] = {}
    for kind, group in groupby(sorted(documents, key=_kind), _kind):
        by_kind[kind] = tuple(group)
    config_maps = {c.at("metadata", "name").text: c.at("data").fields for c in by_kind.get("ConfigMap", ())}
    by_owner = {id(document): tuple(pods_of(document, config_maps)) for document in documents}
    pods = tuple(pod for document in documents for pod in by_owner[id(document)])
    return Manifest(documents, by_kind, parsed.duplicates, pods, by_owner, strays)


def _is_stray(document: Located) -> bool:
    return document.kind == "mapping" and not (document.at("kind") and document.at("apiVersion"))


def _says_what_it_is(stray: Located) -> bool:
    return any(key.casefold() in {"kind", "apiversion"} for key in stray.fields)


def _kind(document: Located) -> str:
    return document.at("kind").text


def _objects(document: Located) -> Iterator[Located]:
    """The objects of a document: a List's items, and what an Argo template makes when it runs."""
    if document.at("kind").text.endswith("List"):
        for item in document.at("items").items:
            yield from _objects(item)
    elif document.at("kind") and document.at("apiVersion"):
        yield document
        spec = document.at("spec", "workflowSpec") or document.at("spec")
        for template in spec.at("templates").items:
            yield from _embedded(template.at("resource", "manifest"))


def _embedded(text: Located) -> Iterator[Located]:
    # With values still to be filled in it may be no YAML yet; then there is nothing to say about it.
    if not text.block_line:
        return
    try:
        parsed = parse_documents(text.text, text.block_line)
    except UsageError:
        return
    for document in parsed.documents:
        if document.at("kind") and document.at("apiVersion"):
            yield document
