"""Reads job.toml into a JobSpec: syntax, types, names and what contradicts itself, all told at once."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from azcp_runtime.contract import ENV_ACCOUNT_KEY, ENV_SAS, UsageError
from azcp_runtime.contract.options import AUTO, MOST_RAILS, Rails
from azcp_runtime.contract.units import parse_size

from azcp_kit.shown import shown
from azcp_kit.spec import names
from azcp_kit.spec.cyclecloud import read_cyclecloud
from azcp_kit.spec.durations import parse_duration
from azcp_kit.spec.job import (
    Auth,
    Command,
    Distribute,
    Form,
    JobSpec,
    Limits,
    Resources,
    Security,
    Storage,
    StorageKind,
    Toleration,
    WarmupForm,
)
from azcp_kit.spec.lines import key_lines, line_of
from azcp_kit.spec.nccl import read_nccl
from azcp_kit.spec.problems import Problem, SpecError
from azcp_kit.spec.reader import Reader
from azcp_kit.spec.rules import contradictions, examples_left
from azcp_kit.spec.sku import Sku, find_sku
from azcp_kit.spec.slurm import read_slurm

_MOST_NODES: Final = 10_000
_MOST_CONNECTIONS: Final = 300
_LARGEST_UID: Final = 2**31 - 1
_LARGEST_PORT: Final = 65535
_MEMORY_BYTES: Final = 4 << 30
_SHM_BYTES: Final = 1 << 30
_WAIT_S: Final = 600
_LARGEST_FILE_BYTES: Final = 1 << 20
_UNNAMED: Final = "job"
_SET: Final = "--set"


More = Callable[[JobSpec], Sequence[Problem]]
"""What else must hold, for one purpose; told together with the rest."""


def read_job(
    path: Path, settings: Sequence[str] = (), more: More = lambda _: (), left: More = examples_left
) -> JobSpec:
    """The job that a file describes.

    Args:
        path: of the job.toml.
        settings: ``key=value`` of the command line, which come over the file's.
        more: what else must hold.
        left: what is only an example yet, and must not be.

    Raises:
        UsageError: the file cannot be read, or is no TOML.
        SpecError: it has problems; all of them are named.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE_BYTES + 1)
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}", remedy="write one with `azcp-kit init`"
        ) from error
    if len(content) > _LARGEST_FILE_BYTES:
        raise UsageError(f"{path} is larger than any job.toml")
    return parse_job(text, path.name, settings, lambda job: [*left(job), *more(job)])


def parse_job(
    text: str, name: str = "job.toml", settings: Sequence[str] = (), more: More = lambda _: ()
) -> JobSpec:
    """The same from its text."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a whole number of 5,000 digits is a ValueError too
        raise UsageError(f"{name} is no TOML: {error}") from error
    problems: list[Problem] = []
    said = [_override(table, setting, problems) for setting in settings]
    job = _job(Reader(table, problems), problems)
    wrong = {problem.key for problem in problems}
    problems += contradictions(job, wrong)
    problems += [problem for problem in more(job) if not _holds_a_wrong_one(problem.key, wrong)]
    if problems:
        raise SpecError(name, _placed(problems, key_lines(text), said))
    return job


def _holds_a_wrong_one(key: str, wrong: Collection[str]) -> bool:
    """Whether the key is wrong already, or is a table of which an entry is."""
    return any(one == key or one.startswith(f"{key}.") for one in wrong)


def _override(table: dict[str, Any], setting: str, problems: list[Problem]) -> str:
    """Put ``key=value`` into the table; the key's dotted name. A part with a dot of its own is quoted."""
    key, equals, text = setting.partition("=")
    path = _path(key)
    if not equals or not path:
        problems.append(Problem(_SET, f"{shown(setting)} is not key=value"))
        return _SET
    *parents, last = path
    for parent in parents:
        below = table.setdefault(parent, {})
        if not isinstance(below, dict):
            problems.append(Problem(_SET, f"{shown(key)}: {shown(parent)} is no table"))
            return _SET
        table = below
    table[last] = _value(text)
    return ".".join(path)


def _path(key: str) -> list[str]:
    try:
        found: object = tomllib.loads(f"{key} = 0")
    except (ValueError, RecursionError):
        return []
    path: list[str] = []
    while isinstance(found, dict) and len(found) == 1:
        ((name, found),) = found.items()
        path.append(name)
    return path if found == 0 else []


def _value(text: str) -> object:
    """A TOML value; a bare word is a text."""
    try:
        found = tomllib.loads(f"v = {text}")
    except (ValueError, RecursionError):
        return text
    return found["v"] if len(found) == 1 else text


def _placed(
    problems: Sequence[Problem], lines: Mapping[str, int], said: Sequence[str]
) -> list[tuple[str, Problem]]:
    """Each with its place, in the order of the file."""

    def place(problem: Problem) -> tuple[int, str]:
        if problem.key == _SET or any(
            problem.key == key or problem.key.startswith(f"{key}.") for key in said
        ):
            return 0, "--set"
        line = line_of(lines, problem.key)
        return (line, f"line {line}") if line else (1 << 31, "missing")

    placed = sorted(((place(problem), problem) for problem in problems), key=lambda entry: entry[0][0])
    return [(where, problem) for (_, where), problem in placed]


def _job(top: Reader, problems: list[Problem]) -> JobSpec:
    sku = _sku(top)
    name = top.text("name", _UNNAMED, check=names.object_label, needed=True)
    image = top.text("image", "image", check=names.image, needed=True)
    resources = _resources(top.table("resources"), sku)
    security = Security(top.choice("security", list(Security), Security.PRIVILEGED))
    job = JobSpec(
        name=name,
        namespace=top.text("namespace", check=names.dns_label),
        image=image,
        source=top.text("source", "/", needed=True),
        dest=top.text("dest", "/x", check=names.mount, needed=True),
        nodes=top.whole("nodes", 1, least=1, most=_MOST_NODES, needed=True),
        rails=_rails(top),
        sku=sku,
        security=security,
        user=_user(top, security),
        queue=top.text("queue", check=names.queue),
        priority_class=top.text("priority-class", check=names.object_name),
        pull_secret=top.text("pull-secret", check=names.object_name),
        host_network=top.flag("host-network"),
        volcano_ssh_plugin=top.flag("volcano-ssh-plugin"),
        warmup=WarmupForm(top.choice("warmup", list(WarmupForm), WarmupForm.JOBS)),
        auth=_auth(top.table("auth"), name, problems),
        command=_command(top.table("command"), image),
        distribute=_distribute(top.table("distribute")),
        resources=resources,
        storage=_storage(top.table("storage")),
        limits=_limits(top.table("limits")),
        labels=top.texts("labels", names.label_key, names.label_value),
        annotations=top.texts("annotations", names.label_key, names.any_text),
        node_selector=top.texts("node-selector", names.label_key, names.label_value),
        tolerations=tuple(_toleration(reader) for reader in top.tables("tolerations")),
        slurm=read_slurm(top.table("slurm"), resources.gpus),
        cyclecloud=read_cyclecloud(top.table("cyclecloud"), name),
        nccl_test=read_nccl(top.table("nccl-test")),
    )
    top.finish()
    return job


def _sku(top: Reader) -> Sku | None:
    found: list[Sku] = []

    def check(text: str) -> str:
        try:
            found.append(find_sku(text))
        except UsageError as error:
            return f"is no VM size that is known here; {error.remedy}"
        return ""

    top.text("sku", check=check)
    return found[0] if found else None


def _rails(top: Reader) -> Rails | None:
    found = top.whole_or_word("rails", AUTO, least=1, most=MOST_RAILS)
    return AUTO if isinstance(found, str) else found


def _user(top: Reader, security: Security) -> int | None:
    default = 1000 if security is Security.RESTRICTED else -1
    uid = top.whole("user", default, most=_LARGEST_UID)
    return None if uid < 0 else uid


def _auth(table: Reader, name: str, problems: list[Problem]) -> Auth:
    auth = Auth(
        identity=table.text("identity", check=names.guid, secret=True).lower(),
        kubelet_identity=table.text("kubelet-identity", check=names.guid, secret=True).lower(),
        secret=table.text("secret", check=names.object_name, secret=True),
        secret_key=table.choice("secret-key", (ENV_SAS, ENV_ACCOUNT_KEY), ENV_SAS),
        service_account=table.text("service-account", check=names.object_name),
        identity_name=table.text("identity-name", f"{name}-identity"),
        resource_group=table.text("resource-group"),
        cluster=table.text("cluster"),
    )
    anonymous = table.flag("anonymous")
    table.finish()
    ways = [key for key in ("identity", "kubelet-identity", "secret", "anonymous") if table.has(key)]
    if len(ways) - (table.has("anonymous") and not anonymous) > 1:
        problems.append(
            Problem("auth", f"has {' and '.join(ways)}", "give one way to prove who the pods are")
        )
    return auth


def _command(table: Reader, image: str) -> Command:
    command = Command(
        run=table.words("run"),
        form=Form(table.choice("form", list(Form), Form.PLAIN)),
        image=table.text("image", image, check=names.image),
        env=table.texts("env", names.variable, names.any_text),
        port=table.whole("port", 0, most=_LARGEST_PORT),
    )
    table.finish()
    return command


def _distribute(table: Reader) -> Distribute:
    distribute = Distribute(
        memory_bytes=table.parsed("memory", _MEMORY_BYTES, parse_size),
        concurrency=table.whole("concurrency", 0, least=1, most=_MOST_CONNECTIONS),
        options=table.words("options"),
    )
    table.finish()
    return distribute


def _resources(table: Reader, sku: Sku | None) -> Resources:
    resources = Resources(
        gpus=table.whole("gpus", sku.gpus if sku else 0, most=64),
        gpu_resource=table.text(
            "gpu-resource", sku.gpu_resource if sku else "nvidia.com/gpu", check=names.resource
        ),
        rdma=table.text("rdma", check=names.resource),
        rdma_count=table.whole("rdma-count", sku.hcas if sku else 1, least=1, most=1000),
        cpu=table.text("cpu", check=names.quantity),
        memory=table.text("memory", check=names.quantity),
        shm_bytes=table.parsed("shm", sku.shm_gib << 30 if sku else _SHM_BYTES, parse_size),
    )
    table.finish()
    return resources


def _storage(table: Reader) -> Storage:
    storage = Storage(
        kind=StorageKind(table.choice("kind", list(StorageKind), StorageKind.HOST_PATH)),
        path=table.text("path", "/", check=names.mount, needed=True),
        storage_class=table.text("class", check=names.object_name),
        size_bytes=table.parsed("size", 0, parse_size),
    )
    table.finish()
    return storage


def _limits(table: Reader) -> Limits:
    limits = Limits(
        deadline_s=table.parsed("deadline", 0, parse_duration),
        wait_s=table.parsed("wait", _WAIT_S, parse_duration),
        retries=table.whole("retries", 0, most=100),
        ttl_s=table.parsed("ttl", 0, parse_duration),
    )
    table.finish()
    return limits


def _toleration(table: Reader) -> Toleration:
    toleration = Toleration(
        key=table.text("key", check=names.label_key),
        operator=table.choice(
            "operator", ("Exists", "Equal"), "Exists" if not table.has("value") else "Equal"
        ),
        value=table.text("value", check=names.label_value),
        effect=table.choice("effect", ("NoSchedule", "PreferNoSchedule", "NoExecute"), ""),
    )
    if toleration.operator == "Exists" and toleration.value:
        table.problem("value", "is set, but operator Exists looks at the key alone")
    if toleration.operator == "Equal" and not toleration.key:
        table.problem("key", "is missing, and operator Equal needs one")
    table.finish()
    return toleration
