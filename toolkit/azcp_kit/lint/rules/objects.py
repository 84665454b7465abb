"""What an object is: a kind that lint knows by its right name, with pods in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.known_keys import API_VERSIONS, OBJECT, is_known
from azcp_kit.lint.located import Located
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.near import nearest

WRONG_NAME: Final = Rule(
    "K110-no-such-kind",
    Severity.ERROR,
    why="the API server has no such kind and refuses the object; lint looked no further into it",
    fix="write kind and apiVersion as the API has them",
)
NOT_JUDGED: Final = Rule(
    "K111-not-judged",
    Severity.NOTE,
    why="lint has no rules for the kind: that it finds nothing in it means nothing",
    fix="have the API server look at it: `kubectl apply --dry-run=server -f FILE`",
)
NO_PODS: Final = Rule(
    "K112-nothing-to-run",
    Severity.ERROR,
    why="without it the object is refused, or no pod is ever made",
    fix="add it",
)

_POD: Final = ("spec", "containers")
_WITHIN: Final = {
    "CronJob": ("spec", "jobTemplate", "spec", "template", *_POD),
    "DaemonSet": ("spec", "template", *_POD),
    "Deployment": ("spec", "template", *_POD),
    "Job": ("spec", "template", *_POD),
    "Pod": _POD,
    "ReplicaSet": ("spec", "template", *_POD),
    "StatefulSet": ("spec", "template", *_POD),
}
REQUIRED: Final = frozenset(
    {"spec", "template", "containers", "jobTemplate", "mpiReplicaSpecs", "Launcher", "Worker",
     "replicatedJobs", "tasks"}
)  # fmt: skip
"""Keys whose absence is an error here, so that no other rule needs to speak of a slip in them."""
_MOST_NAMES: Final = 6


def names(manifest: Manifest) -> Iterator[Finding]:
    """Kinds and versions that are nearly ones that lint knows, and kinds that it does not know."""
    for stray in manifest.strays:
        for key in ("apiVersion", "kind"):
            if not stray.at(key):
                near = _slip_of(key, stray)
                fix = f"did you mean {key} where {named(near)} stands?" if near else f"add {key}"
                yield WRONG_NAME.at(_line(stray, near), f"an object without {key}", fix=fix)
    for document in manifest.documents:
        kind = document.at("kind")
        if kind.text not in API_VERSIONS:
            near = nearest(kind.text, API_VERSIONS)
            if near:
                yield WRONG_NAME.at(
                    kind.line, f"there is no kind {named(kind.text)}", fix=f"did you mean {near}?"
                )
            else:
                yield NOT_JUDGED.at(kind.line, f"not judged: kind {named(kind.text)}")
        else:
            yield from _version(document, API_VERSIONS[kind.text])


def _version(document: Located, known: tuple[str, ...]) -> Iterator[Finding]:
    version = document.at("apiVersion")
    if version.text in known:
        return
    near = nearest(version.text, known) or _other_version(version.text, known)
    if near:
        what = f"{document.at('kind').text} has the apiVersion {named(version.text)}"
        yield WRONG_NAME.at(version.line, what, fix=f"did you mean {near}?")
    else:
        kind = document.at("kind").text
        yield NOT_JUDGED.at(version.line, f"not judged: kind {kind} of {named(version.text)}")


def _other_version(text: str, known: tuple[str, ...]) -> str:
    """Built-in kinds have one version; those of operators may get another one some day."""
    group = text.rpartition("/")[0]
    built_in = next((api for api in known if api.rpartition("/")[0] in {"", "apps", "batch"}), "")
    is_missing_group = not group and text[:1] == "v"
    same_group = bool(built_in) and group == built_in.rpartition("/")[0]
    return (built_in or known[0]) if is_missing_group or same_group else ""


def pods(manifest: Manifest) -> Iterator[Finding]:
    """A kind that makes pods, without the part that says which."""
    for document in manifest.documents:
        for start, path in _required(document) if is_known(document) else ():
            holder = start
            for key in path:
                value = holder.at(key)
                if not (value.text or value.fields or value.items):
                    yield _absent(document, holder, key)
                if not (value.fields or value.items):
                    break
                holder = value


def _required(document: Located) -> Iterator[tuple[Located, tuple[str, ...]]]:
    """Where to begin, and the keys from there on, each inside the one before."""
    kind = document.at("kind").text
    if kind == "MPIJob":
        specs = document.at("spec", "mpiReplicaSpecs")
        if not specs:
            yield document, ("spec", "mpiReplicaSpecs")
            return
        yield specs, ("Launcher", "template", *_POD)
        if specs.at("Worker") or not document.at("spec", "runLauncherAsWorker").is_true:
            yield specs, ("Worker", "template", *_POD)
    elif kind == "JobSet":
        yield document, ("spec", "replicatedJobs")
        for part in document.at("spec", "replicatedJobs").items:
            yield part, ("template", "spec", "template", *_POD)
    elif kind == "Job" and document.at("apiVersion").text.startswith("batch.volcano.sh/"):
        yield document, ("spec", "tasks")
        for part in document.at("spec", "tasks").items:
            yield part, ("template", *_POD)
    elif kind in _WITHIN:
        yield document, _WITHIN[kind]


def _absent(document: Located, holder: Located, key: str) -> Finding:
    near = _slip_of(key, holder)
    there = ", ".join(named(name) for name in list(holder.fields)[:_MOST_NAMES]) or "nothing"
    what = f"the {named(document.at('kind').text)} has no {key}"
    fix = f"did you mean {key} where {named(near)} stands?" if near else f"add {key}; there is {there}"
    return NO_PODS.at(_line(holder, near), what, fix=fix)


def _slip_of(key: str, holder: Located) -> str:
    """The key of the holder that is meant to be `key`."""
    fields = list(holder.fields)[:1000]
    return next((name for name in fields if name not in OBJECT and nearest(name, (key,))), "")


def _line(holder: Located, key: str) -> int:
    return holder.fields[key].line if key else holder.line


MANIFEST_RULES: Final = (names, pods)
