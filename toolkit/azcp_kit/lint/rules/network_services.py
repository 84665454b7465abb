"""The headless Service behind the names of peers: there, of the right name, published in time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.located import Located
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.pods import Pod
from azcp_kit.lint.rules.network_names import FILLED_IN_LATER

HIDDEN_UNTIL_READY: Final = Rule(
    "K303-service-hides-unready-pods",
    Severity.WARNING,
    why="a headless Service publishes only ready pods, and a pod in its initContainers is not ready: peers"
    " wait for names that cannot resolve",
    fix="set publishNotReadyAddresses: true on the Service",
)
NO_SUCH_SERVICE: Final = Rule(
    "K304-subdomain-without-service",
    Severity.ERROR,
    why="a pod has a DNS name of its own only under a headless Service of exactly that name in its namespace",
    fix="give the Service, the subdomain (or serviceName) and the hosts one name",
)
SELECTS_NOTHING: Final = Rule(
    "K305-service-selects-nothing",
    Severity.WARNING,
    why="without a pod that carries all of the selector's labels none of the names resolves",
    fix="use a label that the pod template has",
)
_GIVEN_BY_CONTROLLERS: Final = re.compile(
    r"job-name|controller-uid|pod-template-hash|controller-revision-hash"
    r"|(?:[\w.-]+\.)?(?:batch\.kubernetes\.io|apps\.kubernetes\.io|statefulset\.kubernetes\.io|kubeflow\.org"
    r"|jobset\.sigs\.k8s\.io|volcano\.sh|argoproj\.io)/.*"
)


def services(pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """The headless Service behind a pod's own DNS name: there, of the right name, published in time."""
    wanted = pod.spec.at("subdomain") or _service_name(pod)
    if not wanted or not pod.is_peer or FILLED_IN_LATER.search(wanted.text):
        return
    known = manifest.of_kind("Service")
    own = next((s for s in known if s.at("metadata", "name").text == wanted.text), None)
    if own is None:
        selecting = [s for s in known if _selects(s, pod)]
        # Alone in its file, a pod may have its Service elsewhere.
        severity = Severity.ERROR if selecting else Severity.WARNING if known else Severity.NOTE
        what = f"no Service {named(wanted.text)} in this file"
        yield NO_SUCH_SERVICE.at(wanted.line, what, severity=severity)
    elif own.at("spec", "clusterIP").text != "None":
        yield NO_SUCH_SERVICE.at(
            own.at("spec", "clusterIP").line,
            f"Service {named(wanted.text)} is not headless",
            fix='set clusterIP: "None"',
        )
    elif not own.at("spec", "publishNotReadyAddresses").is_true:
        yield HIDDEN_UNTIL_READY.at(
            own.at("spec").line, f"Service {named(wanted.text)} has no publishNotReadyAddresses"
        )


def _service_name(pod: Pod) -> Located:
    return pod.owner.at("spec", "serviceName") if pod.kind == "StatefulSet" else Located(pod.spec.line)


def _selects(service: Located, pod: Pod) -> bool:
    selector = service.at("spec", "selector").fields
    return bool(selector) and all(_has_label(pod, key, value.text) for key, value in selector.items())


def _has_label(pod: Pod, key: str, value: str) -> bool:
    if key in pod.labels:
        return pod.labels[key].text == value
    if key.endswith("job-name") and pod.kind == "Job":
        return pod.name == value
    return _GIVEN_BY_CONTROLLERS.fullmatch(key) is not None


def jobset_network(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """JobSet makes its own Service, which publishes pods that are not ready unless told otherwise."""
    choice = pod.owner.at("spec", "network", "publishNotReadyAddresses")
    if pod.kind == "JobSet" and pod.is_peer and choice.is_false:
        yield HIDDEN_UNTIL_READY.at(choice.line, "the JobSet's network does not publish pods before ready")


def selector_matches(manifest: Manifest) -> Iterator[Finding]:
    """A headless Service beside pods of which none has its labels."""
    for service in manifest.of_kind("Service"):
        selector = service.at("spec", "selector")
        is_headless = service.at("spec", "clusterIP").text == "None"
        templated = any(FILLED_IN_LATER.search(value.text) for value in selector.fields.values())
        if not (is_headless and selector and manifest.pods) or templated:
            continue
        if not any(_selects(service, pod) for pod in manifest.pods):
            what = f"Service {named(service.at('metadata', 'name').text)} selects no pod of this file"
            yield SELECTS_NOTHING.at(selector.line, what)


POD_RULES: Final = (services, jobset_network)
MANIFEST_RULES: Final = (selector_matches,)
