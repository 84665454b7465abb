"""What a job cannot be as a certain kind of manifest."""

from __future__ import annotations

from collections.abc import Iterator

from azcp_runtime.contract.image import LONGEST_HOST_NAME

from azcp_kit.spec.job import Form, JobSpec, StorageKind, WarmupForm
from azcp_kit.spec.names import LONGEST_LABEL
from azcp_kit.spec.problems import Problem
from azcp_kit.targets.table import TARGETS, Target


def target_problems(job: JobSpec, name: str) -> list[Problem]:
    """Everything that stands against it."""
    target = TARGETS[name]
    return [
        *_names(job, name, target),
        *_command(job, name, target),
        *_storage(job, name, target),
        *_limits(job, name, target),
        *_words(job, name),
    ]


def _names(job: JobSpec, name: str, target: Target) -> Iterator[Problem]:
    """Host names that would end Open MPI's daemons without a word, and labels that are no labels."""
    hosts = target.host_names(job) if target.host_names else ()
    longest = max(hosts, key=len, default="")
    most = LONGEST_LABEL if target.is_alone else LONGEST_HOST_NAME
    excess = len(longest) - most
    if excess > 0:
        reason = "no host name may have more than" if target.is_alone else "Open MPI aborts beyond"
        yield Problem(
            "name",
            f"is too long: the host name {longest} has {len(longest)} characters, and {reason} {most}",
            f"make it shorter by {excess}",
        )
    elif len(job.name) > target.longest_name:
        yield Problem(
            "name",
            f"is too long: {name} makes a label of it that has more than {LONGEST_LABEL} characters",
            f"make it shorter by {len(job.name) - target.longest_name}",
        )


def _limits(job: JobSpec, name: str, target: Target) -> Iterator[Problem]:
    """What would be dropped in silence."""
    is_daemonset = _is_daemonset(job, name)
    if target.ends and not is_daemonset:
        return
    limits = {"deadline": job.limits.deadline_s, "retries": job.limits.retries, "ttl": job.limits.ttl_s}
    what = "a DaemonSet" if is_daemonset else name
    for key, value in limits.items():
        if value:
            yield Problem(
                f"limits.{key}",
                f"is set, but {what} never ends by itself",
                "leave it out, or --set it to nothing",
            )


def _command(job: JobSpec, name: str, target: Target) -> Iterator[Problem]:
    command = job.command
    if target.needs_command and not command.run:
        yield Problem("command.run", f"is missing, and {name} serves nothing without it")
    if command.run and not target.takes_command:
        remedy = "leave it out: --set 'command={}'"
        yield Problem("command.run", f"is set, but {name} runs nothing afterwards", remedy)
    if command.form is Form.MPI and not target.has_mpi_form:
        yield Problem("command.form", f"mpi needs a launcher, which {name} has not", "use mpijob")
    if target.has_mpi_form and command.image != job.image:
        yield Problem("command.image", f"is another image, but {name} runs both phases in one", "use job")


def _storage(job: JobSpec, name: str, target: Target) -> Iterator[Problem]:
    if job.queue and (_is_daemonset(job, name) or not target.has_queue):
        yield Problem("queue", f"is set, but no queue admits {name}")
    if target.is_shared and job.storage.kind is not StorageKind.HOST_PATH:
        yield Problem(
            "storage.kind",
            f"{job.storage.kind.value} ends with its pod, and {name} is for others",
            "use host-path",
        )


def _is_daemonset(job: JobSpec, name: str) -> bool:
    return name == "warmup" and job.warmup is WarmupForm.DAEMONSET


def _words(job: JobSpec, name: str) -> Iterator[Problem]:
    """Argo takes double braces for its own, and has no way to write them as text."""
    if name != "argo":
        return
    texts = {
        "source": job.source,
        "dest": job.dest,
        **{f"command.run[{at}]": word for at, word in enumerate(job.command.run)},
        **{f"command.env.{key}": value for key, value in job.command.env.items()},
        **{f"distribute.options[{at}]": word for at, word in enumerate(job.distribute.options)},
        **{f"annotations.{key}": value for key, value in job.annotations.items()},
    }
    for key, text in texts.items():
        if "{{" in text:
            yield Problem(key, "holds {{, which Argo takes for a template of its own")
