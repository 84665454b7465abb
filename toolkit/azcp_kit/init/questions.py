"""What `azcp-kit init` asks, in this order, and what it proposes where nothing was said."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from azcp_kit.spec.job import Security
from azcp_kit.spec.sku import DEFAULT_SKU

Answers = Mapping[str, str]
"""What was said, by the key of the question."""

AUTH: Final = "auth"
AUTH_WAYS: Final = ("identity", "kubelet-identity", "secret", "anonymous")
"""How pods can prove who they are; each but the last is a key of [auth]."""

EXAMPLES: Final[Answers] = {
    "source": "https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX",
    "auth.identity": "00000000-0000-0000-0000-000000000000",
    "auth.kubelet-identity": "00000000-0000-0000-0000-000000000000",
}
"""Defaults that cannot be right for anybody."""

EXAMPLE_REGISTRY: Final = "registry.example/"
"""How a proposed image begins, which cannot be right either."""

_FALLBACK_NAME: Final = "job"
_LONGEST_NAME: Final = 40
"""Of a proposed name: -worker-9999 fits behind it in a host name."""


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that must be known.

    Args:
        key: of job.toml, dotted; `auth` alone is the way.
        flag: the option that answers it; empty where none does.
        text: what is asked.
        default: what is proposed, from the answers before.
        check: what is wrong with an answer, beyond what a job.toml is checked for; empty where nothing is.
        applies: whether it is a question at all, after the answers before.
        unasked: what is wrong with an option where it is none.
    """

    key: str
    flag: str
    text: str
    default: Callable[[Answers], str]
    check: Callable[[str], str] = lambda _: ""
    applies: Callable[[Answers], bool] = lambda _: True
    unasked: str = "is a second way to prove who the pods are: give one"


def proposed_name(source: str) -> str:
    """A name after the last folder of the source."""
    if source == EXAMPLES["source"]:
        return _FALLBACK_NAME
    address, scheme, rest = source.partition("?")[0].partition("://")
    path = rest.partition("/")[2] if scheme else address
    folder = path.rstrip("/").rpartition("/")[2].lower()
    label = re.sub(r"[^a-z0-9]+", "-", folder).lstrip("-")
    if label[:1].isdigit():
        label = f"{_FALLBACK_NAME}-{label}"
    return label[:_LONGEST_NAME].rstrip("-") or _FALLBACK_NAME


def _example(key: str) -> Callable[[Answers], str]:
    return lambda _: EXAMPLES[key]


def _example_image(answers: Answers) -> str:
    return f"{EXAMPLE_REGISTRY}{answers['name']}:azcp"


def _is_way(way: str) -> Callable[[Answers], bool]:
    return lambda answers: answers[AUTH] == way


def _whole(text: str) -> str:
    return "" if re.fullmatch(r"[0-9]{1,9}", text) else "is no whole number"


def _way(text: str) -> str:
    return "" if text in AUTH_WAYS else f"is none of {', '.join(AUTH_WAYS)}"


MAY_BE_EMPTY: Final = ("queue", "slurm.partition")
QUESTIONS: Final = (
    Question("source", "--source", "Which folder of Blob Storage", _example("source")),
    Question("nodes", "--nodes", "On how many nodes", lambda _: "2", check=_whole),
    Question("name", "--name", "Name of the job", lambda said: proposed_name(said["source"])),
    Question("image", "--image", "Image that azcp-kit build made", _example_image),
    Question("dest", "--dest", "Directory on every node", lambda said: f"/mnt/nvme/{said['name']}"),
    Question("sku", "--sku", "VM size of the nodes", lambda _: DEFAULT_SKU),
    Question(AUTH, "", f"How pods sign in: {', '.join(AUTH_WAYS)}", lambda _: AUTH_WAYS[0], check=_way),
    Question(
        "auth.identity",
        "--auth-identity",
        "Client id of the workload identity",
        _example("auth.identity"),
        applies=_is_way("identity"),
    ),
    Question(
        "auth.kubelet-identity",
        "--auth-kubelet-identity",
        "Client id of the nodes' identity",
        _example("auth.kubelet-identity"),
        applies=_is_way("kubelet-identity"),
    ),
    Question(
        "auth.secret",
        "--auth-secret",
        "Name of the Secret with the SAS",
        lambda said: f"{said['name']}-storage",
        applies=_is_way("secret"),
    ),
    Question("queue", "--queue", "Kueue's LocalQueue, or nothing", lambda _: ""),
    Question(
        "security", "--security", f"Security: {', '.join(Security)}", lambda _: Security.PRIVILEGED.value
    ),
)
