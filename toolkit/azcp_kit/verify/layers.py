"""The checks of what was added: its place, owners, leftovers, secrets and size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from azcp_kit.engine import Engine
from azcp_kit.inspect.secret_values import without_secrets
from azcp_kit.inspect.stored import StoredImage
from azcp_kit.shown import shown
from azcp_kit.units import format_size
from azcp_kit.verify.config import added_secrets
from azcp_kit.verify.layer import Rule
from azcp_kit.verify.saved import Layer
from azcp_kit.verify.verification import Check, judged, not_applicable

DEFAULT_BUDGET_BYTES: Final = 110 * 2**20
"""Of the files that the wheel stack adds."""

_REMEDIES: Final = {
    Rule.PLACE: "build again with the default options, which only copy below /opt/azcp",
    Rule.OWNER: "build again; nothing below /opt/azcp may be changed by anybody but root",
    Rule.CACHE: "clean up in the step that makes them: a later step does not make the image smaller",
    Rule.SECRET: "withdraw the secret now, it is in a layer for good; then build without it",
}
_NO_BASE: Final = "no base is known; name it with --base"


@dataclass(frozen=True, slots=True)
class Stack:
    """What the image's manifest says of how it was made.

    Args:
        mpi: wheel, source or image.
        has_packages: whether the base's package manager was used.
        ssh: bundled, or base for OpenSSH.
    """

    mpi: str
    has_packages: bool
    ssh: str = "bundled"


def check_layers(layers: Sequence[Layer], stack: Stack) -> list[Check]:
    """A check for each rule."""
    return [_check_rule(rule, layers, stack) for rule in Rule]


def check_size(layers: Sequence[Layer], stack: Stack, budget_bytes: int | None) -> Check:
    """Whether the files added are within the budget; only the wheel stack has one by itself."""
    name, size_bytes = "size", sum(layer.size_bytes for layer in layers)
    added = f"{format_size(size_bytes)} in {len(layers)} layers"
    if budget_bytes is None and stack.mpi == "wheel" and not stack.has_packages:
        budget_bytes = DEFAULT_BUDGET_BYTES
    if budget_bytes is None:
        return not_applicable(name, f"{added}; no budget was given")
    problems = (f"{added} are more than {format_size(budget_bytes)}",) if size_bytes > budget_bytes else ()
    within = f"{added}, within {format_size(budget_bytes)}"
    return judged(name, problems, within, "see /opt/azcp/manifest.json for what is in it, or raise --budget")


def check_history(engine: Engine, image: StoredImage, base: StoredImage) -> Check:
    """Whether the steps of the injection, and the config that they left, are free of secrets."""
    steps, below = engine.steps(image), engine.steps(base)
    own = [text for text, _ in steps[: max(0, len(steps) - len(below))]]
    problems = [
        f"the step {shown(without_secrets(step), 80)}" for step in own if without_secrets(step) != step
    ]
    return judged(
        "secrets in history and config",
        (*problems, *added_secrets(image.config, base.config)),
        f"none in {len(own)} steps",
        _REMEDIES[Rule.SECRET],
    )


def without_base() -> list[Check]:
    """The same checks, where nobody knows which layers are added."""
    return [not_applicable(name, _NO_BASE) for name in (*Rule, "size", "secrets in history and config")]


def _check_rule(rule: Rule, layers: Sequence[Layer], stack: Stack) -> Check:
    if rule is Rule.PLACE and stack.has_packages:
        return not_applicable(rule.value, "packages of the base's distribution were installed")
    problems = tuple(breach.text for layer in layers for breach in layer.breaches if breach.rule is rule)
    otherwise = {Rule.PLACE: "all below /opt/azcp", Rule.OWNER: "root's, and nobody else can write"}
    return judged(rule.value, problems, otherwise.get(rule, "none"), _REMEDIES[rule])
