"""What an owner makes of failures and indexes: retries, restarts, deadlines, completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from azcp_kit.lint.finding import Finding, Rule, Severity
from azcp_kit.lint.located import Located
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.pods import Pod
from azcp_kit.lint.settings import MPIRUN

UNEQUAL_COMPLETIONS: Final = Rule(
    "K901-completions-differ",
    Severity.ERROR,
    why="peers need all indexes at the same time, but only `parallelism` pods run at once: the others are"
    " waited for in vain",
    fix="give completions and parallelism the same number",
)
NO_INDEX: Final = Rule(
    "K902-index-without-indexed-mode",
    Severity.ERROR,
    why="only completionMode: Indexed gives pods an index and a host name of their own",
    fix="set completionMode: Indexed",
)
NO_BACKOFF_LIMIT: Final = Rule(
    "K903-no-backoff-limit",
    Severity.WARNING,
    why="the default is 6: a job that cannot work holds its nodes for several more starts, and a pod that is"
    " started anew meets peers that are past the download",
    fix="set backoffLimit, 0 for peers (limits.retries in job.toml)",
)
RESTARTS_ALONE: Final = Rule(
    "K904-restarts-alone",
    Severity.WARNING,
    why="one container starts again in place while its peers still wait for the old one, or have ended",
    fix="set restartPolicy: Never and let the Job decide by backoffLimit",
)
WRONG_RESTART_POLICY: Final = Rule(
    "K905-restart-policy-refused",
    Severity.ERROR,
    why="the API server takes only Never and OnFailure in a Job, and only Always in a set of pods",
    fix="set the restartPolicy that the kind allows",
)
NO_DEADLINE: Final = Rule(
    "K906-no-deadline",
    Severity.NOTE,
    why="a job that hangs holds its nodes until somebody looks",
    fix="set spec.activeDeadlineSeconds (limits.deadline in job.toml)",
)

_INDEX_FIELD: Final = "batch.kubernetes.io/job-completion-index"
_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_BY_HAND: Final = (*MPIRUN, "azcp-cluster", "sshd")
"""azcp-launch ends on all nodes when one fails, so that they start again together."""
_DEADLINES: Final = {
    "CronJob": "spec.jobTemplate.spec.activeDeadlineSeconds",
    "JobSet": "spec.replicatedJobs[].template.spec.activeDeadlineSeconds",
    "MPIJob": "spec.runPolicy.activeDeadlineSeconds",
}
_ALWAYS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})


def _job_spec(pod: Pod) -> Located:
    """The fields of a Job around the pod template, absent for other kinds."""
    if pod.kind == "Job":
        return pod.owner.at("spec")
    if pod.kind == "CronJob":
        return pod.owner.at("spec", "jobTemplate", "spec")
    return pod.part.at("template", "spec") if pod.kind == "JobSet" else Located(pod.part.line)


def completions(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """An Indexed Job whose pods work together runs all of them at once."""
    spec = _job_spec(pod)
    total, at_once = spec.at("completions"), spec.at("parallelism")
    if not spec or not pod.is_peer or pod.kind == "JobSet" or not (total.number or at_once.number):
        return
    if (total.number or 1) != (at_once.number or 1) and "{{" not in f"{total.text}{at_once.text}":
        what = f"completions {total.text or 'absent'}, parallelism {at_once.text or 'absent'}"
        yield UNEQUAL_COMPLETIONS.at((total or at_once).line, what)


def index(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """The completion index is used, or names made of it, but nothing gives one."""
    spec = _job_spec(pod)
    if not spec or pod.kind == "JobSet" or spec.at("completionMode").text == "Indexed":
        return
    line = _index_use(pod)
    if line:
        yield NO_INDEX.at(line, "the completion index is read, but the Job is not Indexed")
    elif pod.spec.at("subdomain") and pod.is_peer and (pod.replicas or 1) > 1:
        yield NO_INDEX.at(
            pod.spec.at("subdomain").line,
            "pods under a subdomain have no host names of their own: the Job is not Indexed",
            severity=Severity.WARNING,
        )


def _index_use(pod: Pod) -> int | None:
    for container in pod.containers:
        for item in container.node.at("env").items:
            if _INDEX_FIELD in item.at("valueFrom", "fieldRef", "fieldPath").text:
                return item.line
        for command in container.script.commands:
            if any(_INDEX_VARIABLE in word.text for word in command.words):
                return command.line
    return None


def backoff_limit(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """How often a failure is tried again."""
    if pod.kind == "MPIJob" and pod.role == "Launcher":
        policy = pod.owner.at("spec", "runPolicy")
        if not policy.at("backoffLimit"):
            # A launcher that starts anew finds its workers as they were.
            where = policy or pod.owner.at("spec")
            yield NO_BACKOFF_LIMIT.at(
                where.line,
                "runPolicy has no backoffLimit",
                fix="set runPolicy.backoffLimit (limits.retries in job.toml)",
                severity=Severity.NOTE,
            )
        return
    spec = _job_spec(pod)
    if spec and not (spec.at("backoffLimit") or spec.at("backoffLimitPerIndex")):
        severity = Severity.WARNING if pod.is_peer else Severity.NOTE
        yield NO_BACKOFF_LIMIT.at(spec.line, f"the {pod.kind} has no backoffLimit", severity=severity)


def restart_policy(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """The restart policy fits the kind, and peers do not start again one by one."""
    policy = pod.spec.at("restartPolicy")
    job = _job_spec(pod)
    # JobSet fills in OnFailure itself.
    allowed = {"", "OnFailure", "Never"} if pod.kind == "JobSet" else {"OnFailure", "Never"}
    if (job and policy.text not in allowed) or (pod.kind in _ALWAYS and policy.text not in {"", "Always"}):
        if pod.spec:
            what = f"restartPolicy {policy.text or 'is absent, which means Always,'} in a {pod.kind}"
            yield WRONG_RESTART_POLICY.at(policy.line, what)
    elif job and policy.text == "OnFailure" and pod.runs(*_BY_HAND) and (pod.replicas or 1) > 1:
        yield RESTARTS_ALONE.at(policy.line, f"restartPolicy OnFailure in a {pod.kind} of peers")


def deadline(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """An end for a job that hangs."""
    if pod.kind == "MPIJob" and pod.role == "Launcher":
        spec = pod.owner.at("spec")
        has_end = spec.at("runPolicy", "activeDeadlineSeconds") or spec.at("activeDeadlineSeconds")
    else:
        spec = _job_spec(pod)
        has_end = spec.at("activeDeadlineSeconds") or pod.spec.at("activeDeadlineSeconds")
    if spec and pod.is_peer and not has_end:
        where = _DEADLINES.get(pod.kind, "spec.activeDeadlineSeconds")
        fix = f"set {where} (limits.deadline in job.toml)"
        yield NO_DEADLINE.at(spec.line, f"the {pod.kind} has no activeDeadlineSeconds", fix=fix)


POD_RULES: Final = (completions, index, backoff_limit, restart_policy, deadline)
