"""Whether a manifest's commands wait for as many nodes as it makes: said before any number is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from azcp_runtime.contract import PreflightError

from azcp_kit.rehearse.account import told_words
from azcp_kit.rehearse.documents import Document
from azcp_kit.rehearse.fields import Fields
from azcp_kit.rehearse.scale import containers_in, node_count, pod_count
from azcp_kit.shown import shown

_NODES: Final = "--nodes"


def expect_agreement(documents: Iterable[Document]) -> None:
    """See that --nodes of each azcp-launch is a number that its document has.

    Raises:
        PreflightError: one is not, so that the job would wait for ever, or leave nodes out; all are named.
    """
    wrong = [line for document in documents for line in dict.fromkeys(_disagreements(document))]
    if wrong:
        raise PreflightError(
            "; ".join(wrong), remedy="make the numbers the same: it would fail on the cluster too"
        )


def _disagreements(document: Document) -> Iterator[str]:
    own = node_count(document)
    if not own:
        return
    known = _counts(document)
    for container in containers_in(dict(document.fields.raw)):
        asked = _asked(Fields(container, document.fields.where))
        if asked is not None and asked not in known:
            name = container.get("name", "")
            yield shown(f"{document.title}: {name} says --nodes {asked}, but the manifest makes {own}")


def _counts(document: Document) -> set[int]:
    """Every number of pods that one azcp-launch of the document could be meant for."""
    spec = document.fields.at("spec")
    found = {node_count(document), pod_count(document)}
    found |= {task.number("replicas", 0) for task in spec.each("tasks")}
    for job in spec.each("replicatedJobs"):
        own = job.at("template", "spec")
        count = own.number("completions", own.number("parallelism", 1))
        found |= {count, count * job.number("replicas", 1)}
    return found


def _asked(container: Fields) -> int | None:
    """The last --nodes of the azcp-launch in a container, where it is a number."""
    found = None
    for program, words in told_words((*container.words("command"), *container.words("args"))):
        if program != "azcp-launch":
            continue
        for index, word in enumerate(words):
            option, sign, value = word.partition("=")
            if option == _NODES:
                value = value if sign else words[index + 1] if index + 1 < len(words) else ""
                found = int(value) if value.isascii() and value.isdecimal() else found
    return found
