"""What a job.toml is begun for: its questions, its text, and what must hold of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from azcp_runtime.contract import UsageError

from azcp_kit.init.questions import AUTH_WAYS, QUESTIONS, Answers, Question
from azcp_kit.init.slurm import SLURM_QUESTIONS, slurm_checks, slurm_toml
from azcp_kit.init.text import job_toml
from azcp_kit.spec.read import More


@dataclass(frozen=True, slots=True)
class Purpose:
    """One system that runs jobs.

    Args:
        questions: in their order.
        ways: to sign in, and the key that has what each needs.
        text: of the file.
        checks: what must hold beyond what every job.toml is checked for.
    """

    questions: Sequence[Question]
    ways: Mapping[str, str]
    text: Callable[[Answers], str]
    checks: Callable[[Answers], More]


KUBERNETES: Final = Purpose(
    QUESTIONS,
    MappingProxyType({way: f"auth.{way}" for way in AUTH_WAYS}),
    job_toml,
    lambda _: lambda _: (),
)
SLURM: Final = Purpose(
    SLURM_QUESTIONS,
    MappingProxyType({"kubelet-identity": "auth.kubelet-identity", "sas-file": "slurm.sas-file"}),
    slurm_toml,
    slurm_checks,
)
PURPOSES: Final[Mapping[str, Purpose]] = MappingProxyType({"kubernetes": KUBERNETES, "slurm": SLURM})


def find_purpose(name: str) -> Purpose:
    """The one of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in PURPOSES:
        raise UsageError(f"--for {name} is none of {', '.join(PURPOSES)}")
    return PURPOSES[name]
