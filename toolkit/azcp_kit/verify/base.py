"""Finds the base of an image among those of the engine: the one whose layers it begins with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from azcp_runtime.contract import UsageError

from azcp_kit.engine import Engine, errors_told
from azcp_kit.inspect.stored import StoredImage
from azcp_kit.verify.config import compare_config
from azcp_kit.verify.verification import Check, Outcome, judged


def find_base(engine: Engine, image: StoredImage) -> StoredImage | None:
    """The local image with a name that fits best; None where none does."""
    with errors_told("the engine cannot list its images"):
        listed = engine.client.api.images()
    names = (str((each.get("RepoTags") or each.get("RepoDigests") or [""])[0]) for each in listed)
    named = [name for name in names if name and "<none>" not in name]
    return closest(image, _those_left(engine, named))


def _those_left(engine: Engine, names: Iterable[str]) -> Iterator[StoredImage]:
    for name in names:
        # Somebody may have removed it since it was listed.
        with suppress(UsageError):
            yield engine.image(name)


def closest(image: StoredImage, candidates: Iterable[StoredImage]) -> StoredImage | None:
    """The candidate with the most of the image's layers, and among such the one with the most like config."""
    fitting = [
        each for each in candidates if begins_with(image, each) and each.identity.arch == image.identity.arch
    ]
    return max(fitting, key=lambda each: (len(each.identity.layers), -_unlike(image, each)), default=None)


def begins_with(image: StoredImage, base: StoredImage) -> bool:
    """Whether the image has the base's layers at its bottom, and more."""
    layers, below = image.identity.layers, base.identity.layers
    return 0 < len(below) < len(layers) and layers[: len(below)] == below


def check_layers_below(image: StoredImage, base: StoredImage) -> Check:
    """Whether nothing of the base was squashed, rebuilt or exchanged."""
    layers, below = image.identity.layers, base.identity.layers
    problems = [] if begins_with(image, base) else ["the image does not begin with the base's layers"]
    for what, now, before in (
        ("architecture", image.identity.arch, base.identity.arch),
        ("system", image.identity.os, base.identity.os),
    ):
        if now != before:
            problems.append(f"its {what} is {now}, the base's is {before}")
    return judged(
        "base layers",
        tuple(problems),
        f"the first {len(below)} of {len(layers)}, unchanged",
        "name the image that was injected with --base, or build again from it",
    )


def _unlike(image: StoredImage, base: StoredImage) -> int:
    return sum(check.outcome is Outcome.FAIL for check in compare_config(image.config, base.config))
