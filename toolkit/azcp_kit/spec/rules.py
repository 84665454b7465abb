"""What in a job contradicts itself: keys that are right alone and wrong together."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from azcp_runtime.contract.options import AUTO, DISTRIBUTE_OPTIONS
from azcp_runtime.contract.units import format_size

from azcp_kit.quantity import quantity_bytes
from azcp_kit.spec.amounts import distributor_bytes
from azcp_kit.spec.job import Form, JobSpec, Security, StorageKind
from azcp_kit.spec.problems import Problem
from azcp_kit.spec.secrets import SECRET_VARIABLES, may_be_secret

_OWN_OPTIONS: Final = {
    "--memory": "distribute.memory",
    "--concurrency": "distribute.concurrency",
    "--expect-ranks": "nodes",
    "--hosts": "nodes",
    "--nodes": "nodes",
    "--hostfile": "nodes",
    "--every-node": "nodes",
    "--rails": "rails",
    "--wait": "limits.wait",
    "--sas-file": "auth.secret",
}
_INSTEAD: Final = "put it into a Secret, and name that in auth.secret"
_ADDRESS: Final = "write https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX"
_EXAMPLE: Final = "is only the example that `azcp-kit init` wrote"
_ENDS_EARLY: Final = ("--dry-run", "--stage", "--help", "--version")
"""Options after which the data is not there, though the command has succeeded."""

_OWN_LABELS: Final = (
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "azure.workload.identity/use",
)

Rule = Callable[[JobSpec], Problem | None]


def is_example_id(client_id: str) -> bool:
    """Whether it is the client id of nobody."""
    return bool(client_id) and not client_id.strip("0-")


def examples_left(job: JobSpec) -> list[Problem]:
    """What `init` wrote for want of an answer: it may stand in a job.toml, but nothing comes of it."""
    return [*example_source(job), *_example_identity(job)]


def example_source(job: JobSpec) -> list[Problem]:
    """The same of the source alone: an identity may be about to be made."""
    is_example = "://ACCOUNT." in job.source or "/CONTAINER" in job.source
    return [Problem("source", _EXAMPLE)] if is_example else []


def contradictions(job: JobSpec, wrong: Collection[str]) -> list[Problem]:
    """Every contradiction, save those in keys that are wrong already."""
    found = [problem for rule in _RULES for problem in [rule(job)] if problem]
    found += [problem for rule in (_labels, _secrets, _options) for problem in rule(job)]
    return [problem for problem in found if problem.key not in wrong and not _is_beside(problem, wrong)]


def _is_beside(problem: Problem, wrong: Collection[str]) -> bool:
    """Whether the problem follows from another one: a wrong key has its default here."""
    needed = _NEEDED.get(problem.key, ())
    return any(key in wrong for key in needed)


def _source(job: JobSpec) -> Problem | None:
    if not job.source.startswith(("http://", "https://")):
        if PurePosixPath(job.source).is_absolute():
            return None
        return Problem("source", "is neither a Blob URL nor an absolute path of a directory")
    if "?" in job.source:
        # It is not shown: it may be a signature.
        return Problem(
            "source", "has a query, and a SAS would lie open in the manifest", "name a Secret in auth.secret"
        )
    return None if _is_address(job.source) else Problem("source", "is no address of a folder", _ADDRESS)


def _is_address(source: str) -> bool:
    """Whether there is a host and a container, and nothing that does not belong there."""
    try:
        parts = urlsplit(source)
        port = parts.port
    except ValueError:
        return False
    folders = [folder for folder in parts.path.split("/") if folder]
    least = 1 if parts.scheme == "https" else len(("ACCOUNT", "CONTAINER"))
    is_plain = not (parts.username or parts.password or parts.fragment or port == 0)
    return bool(parts.hostname) and is_plain and len(folders) >= least


def _dest(job: JobSpec) -> Problem | None:
    dest, path = PurePosixPath(job.dest), PurePosixPath(job.storage.path)
    if dest == path or path in dest.parents:
        return None
    return Problem("dest", f"{dest} is not on the storage", f"storage.path is {path}: put it below that")


def _host_path(job: JobSpec) -> Problem | None:
    if job.storage.kind is not StorageKind.HOST_PATH or job.security is Security.PRIVILEGED:
        return None
    return Problem(
        "storage.kind",
        f"host-path is not allowed at security {job.security.value}",
        'use ephemeral or empty-dir, or security = "privileged"',
    )  # fmt: skip


def _size(job: JobSpec) -> Problem | None:
    if job.storage.kind is StorageKind.EPHEMERAL and not job.storage.size_bytes:
        return Problem("storage.size", "is missing", "an ephemeral volume needs its size, such as 2TiB")
    if job.storage.kind is StorageKind.HOST_PATH and job.storage.size_bytes:
        return Problem("storage.size", "is set, but a host path has the size of its disk")
    return None


def _class(job: JobSpec) -> Problem | None:
    if job.storage.storage_class and job.storage.kind is not StorageKind.EPHEMERAL:
        return Problem("storage.class", "is set, but only an ephemeral volume has one")
    return None


def _host_network(job: JobSpec) -> Problem | None:
    if job.host_network and job.security is not Security.PRIVILEGED:
        return Problem("host-network", f"is not allowed at security {job.security.value}")
    return None


def _user(job: JobSpec) -> Problem | None:
    if job.security is Security.RESTRICTED and job.user == 0:
        return Problem("user", "is root, which security restricted forbids")
    return None


def _rails(job: JobSpec) -> Problem | None:
    if job.rails == AUTO and job.sku is None:
        return Problem("rails", "is auto, and what memory that takes is not known", "write sku, or a number")
    if job.rails is None or job.sku is None or job.most_rails <= job.sku.hcas:
        return None
    return Problem("rails", f"{job.rails} are more than the {job.sku.hcas} HCAs of {job.sku.name}")


def _memory(job: JobSpec) -> Problem | None:
    if not job.resources.memory:
        return None
    given, needed = quantity_bytes(job.resources.memory), distributor_bytes(job)
    if given >= needed:
        return None
    return Problem(
        "resources.memory",
        f"{job.resources.memory} is too little: {format_size(needed)} are needed to distribute",
        "distribute.memory and resources.shm count in it",
    )


def _form(job: JobSpec) -> Problem | None:
    command = job.command
    if command.form is Form.TORCHRUN and command.run and PurePosixPath(command.run[0]).name == "torchrun":
        return Problem(
            "command.run", 'begins with torchrun, which form = "torchrun" puts in front', "leave it out"
        )
    if command.form is not Form.PLAIN and not command.run:
        return Problem("command.run", f'is missing, and form = "{command.form.value}" needs one')
    if command.run and not command.run[0]:
        return Problem("command.run", "begins with an empty word")
    return None


def _service_account(job: JobSpec) -> Problem | None:
    if job.auth.service_account and not job.auth.identity:
        return Problem(
            "auth.service-account", "is set, but only a workload identity (auth.identity) uses one"
        )
    return None


def _labels(job: JobSpec) -> Iterator[Problem]:
    for key in job.labels:
        if key in _OWN_LABELS or (job.queue and key.endswith("/queue-name")):
            yield Problem(f"labels.{key}", "is set by azcp-kit itself")


def _secrets(job: JobSpec) -> Iterator[Problem]:
    """Nothing that opens an account stands in a manifest."""
    for key in job.command.env:
        if key in SECRET_VARIABLES:
            yield Problem(f"command.env.{key}", "is a secret, and would lie open in the manifest", _INSTEAD)
    texts = {
        **{f"command.run[{at}]": word for at, word in enumerate(job.command.run)},
        **{
            f"command.env.{key}": text for key, text in job.command.env.items() if key not in SECRET_VARIABLES
        },
        **{f"distribute.options[{at}]": word for at, word in enumerate(job.distribute.options)},
        **{f"annotations.{key}": text for key, text in job.annotations.items()},
    }
    for key, text in texts.items():
        if may_be_secret(text):
            yield Problem(key, "looks like a secret, which would lie open in the manifest", _INSTEAD)


def _options(job: JobSpec) -> Iterator[Problem]:
    """distribute.options must be options of azcp-distribute, and none that a key of job.toml stands for."""
    fabric = [word for word in job.distribute.options if word in ("--require-rdma", "--allow-tcp")]
    if len(set(fabric)) > 1:
        yield Problem(
            "distribute.options", "has both --require-rdma and --allow-tcp", "leave one of them out"
        )
    words = iter(enumerate(job.distribute.options))
    for at, word in words:
        name, equals, _ = word.partition("=")
        key = f"distribute.options[{at}]"
        if name in _OWN_OPTIONS:
            yield Problem(key, f"{name} is set from {_OWN_OPTIONS[name]}")
        elif name in _ENDS_EARLY:
            yield Problem(key, f"{name} leaves the data incomplete, and what comes after it would start")
        elif name not in DISTRIBUTE_OPTIONS:
            near = difflib.get_close_matches(name, DISTRIBUTE_OPTIONS, 1)
            yield Problem(key, "is no option of azcp-distribute", f"did you mean {near[0]}?" if near else "")
            continue
        elif name.startswith("--rail-") and job.rails is None:
            yield Problem(key, f"{name} is of rails, and their number is not said", 'write rails = "auto"')
        if DISTRIBUTE_OPTIONS.get(name) and not equals and next(words, None) is None:
            yield Problem(key, f"{name} needs a value")


def _sku_gpus(job: JobSpec) -> Problem | None:
    sku = job.sku
    if sku is None or job.resources.gpus <= sku.gpus:
        return None
    return Problem("resources.gpus", f"{job.resources.gpus} are more than the {sku.gpus} of {sku.name}")


def _sku_memory(job: JobSpec) -> Problem | None:
    sku, memory = job.sku, job.resources.memory
    if sku is None or not memory or quantity_bytes(memory) <= sku.pod_memory_gib << 30:
        return None
    what = f"{memory} is more than the {sku.pod_memory_gib}Gi that {sku.name} leaves to a pod"
    return Problem("resources.memory", what)


def _example_identity(job: JobSpec) -> Iterator[Problem]:
    for key, value in (("identity", job.auth.identity), ("kubelet-identity", job.auth.kubelet_identity)):
        if is_example_id(value):
            yield Problem(f"auth.{key}", _EXAMPLE, "`azcp-kit generate identity` makes one, or tells it")


_RULES: Final[Sequence[Rule]] = (
    _source,
    _dest,
    _host_path,
    _size,
    _class,
    _host_network,
    _user,
    _rails,
    _memory,
    _form,
    _service_account,
    _sku_gpus,
    _sku_memory,
)

_NEEDED: Final = {
    "dest": ("storage.path", "storage"),
    "storage.kind": ("security",),
    "storage.size": ("storage.kind",),
    "storage.class": ("storage.kind",),
    "host-network": ("security",),
    "user": ("security",),
    "resources.memory": ("distribute.memory", "resources.shm", "rails"),
    "command.run": ("command.form", "command.run[0]"),
    "auth.service-account": ("auth.identity",),
}
