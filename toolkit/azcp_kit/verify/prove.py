"""Verifies an image: what it does, what it is made of, and that its base is as it was."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract.image import MANIFEST

from azcp_kit.engine import Engine, errors_told
from azcp_kit.inspect.detect_config import detect_account
from azcp_kit.inspect.files import ImageTree
from azcp_kit.inspect.stored import StoredImage
from azcp_kit.shown import shown
from azcp_kit.verify.base import begins_with, check_layers_below, find_base
from azcp_kit.verify.commands import QUESTIONS, compare_commands
from azcp_kit.verify.config import compare_config
from azcp_kit.verify.layers import Stack, check_history, check_layers, check_size, without_base
from azcp_kit.verify.parent import check_parent
from azcp_kit.verify.saved import Layer, added_layers
from azcp_kit.verify.self_test import Runner, run_self_test, runners
from azcp_kit.verify.verification import Check, Outcome, Verification, not_applicable

log = logging.getLogger(__name__)

_MANIFEST_BYTES: Final = 2**20
_ARCHES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Injected:
    """What the files of an image tell about its injection.

    Args:
        stack: from its manifest.
        runners: as whom it is to be tried.
    """

    stack: Stack
    runners: tuple[Runner, ...]


def verify_image(
    engine: Engine, image: str, base: str | None = None, budget_bytes: int | None = None
) -> Verification:
    """The proof; it is for the caller to end where it fails.

    Args:
        engine: that holds both images, and runs the containers.
        image: its name or id.
        base: what it was made from; looked for among the engine's images where it is None.
        budget_bytes: the most that may be added; a default one for the wheel stack where it is None.

    Raises:
        UsageError: there is no such image.
        PreflightError: the engine failed.
    """
    stored = engine.image(image)
    below = find_base(engine, stored) if base is None else engine.image(base)
    injected = _look_inside(engine, stored)
    if injected is None:
        return _verification(stored, below, None, (_not_injected(),))
    layers = _layers(engine, stored, below)
    checks = (
        *_base_checks(engine, stored, below, injected.stack),
        *_layer_checks(engine, stored, below, layers, injected.stack, budget_bytes),
        *_self_tests(engine, stored, injected.runners),
    )
    return _verification(stored, below, layers, checks)


def _look_inside(engine: Engine, image: StoredImage) -> Injected | None:
    user = str(image.config.get("User") or "")
    with engine.probe(image) as files:
        tree = ImageTree(files)
        stack = parse_manifest(tree.read(MANIFEST, _MANIFEST_BYTES))
        account = detect_account(user, tree)
    return Injected(stack, runners(user, account, stack.ssh)) if stack else None


def parse_manifest(content: bytes) -> Stack | None:
    """How the image was made; None where there is no manifest, or none that can be read."""
    try:
        manifest = json.loads(content)
        kinds, choices = {component["kind"] for component in manifest["components"]}, manifest["choices"]
        return Stack(str(choices["mpi"]), "package" in kinds, str(choices.get("ssh", "bundled")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _not_injected() -> Check:
    remedy = "build it with azcp-kit build"
    return Check("injected", Outcome.FAIL, f"the image has no {MANIFEST} that can be read", remedy)


def _base_checks(
    engine: Engine, image: StoredImage, base: StoredImage | None, stack: Stack
) -> Iterator[Check]:
    if base is None:
        yield not_applicable(
            "base", "none was given, and the engine holds no image whose layers this one begins with"
        )
        return
    yield check_layers_below(image, base)
    yield check_parent(engine, image, base)
    yield from compare_config(image.config, base.config)
    if reason := _not_runnable(engine, image):
        yield from (not_applicable(f"base {' '.join(question)}", reason) for question in QUESTIONS)
        return
    log.info("asking the base and the image for their versions")
    yield from compare_commands(engine, image, base, has_packages=stack.has_packages)


def _layers(engine: Engine, image: StoredImage, base: StoredImage | None) -> tuple[Layer, ...] | None:
    """The added layers; None where it is not known which they are."""
    if base is None or not begins_with(image, base):
        return None
    count = len(image.identity.layers) - len(base.identity.layers)
    log.info("reading %d added layers", count)
    return added_layers(engine, image, count)


def _layer_checks(
    engine: Engine,
    image: StoredImage,
    base: StoredImage | None,
    layers: tuple[Layer, ...] | None,
    stack: Stack,
    budget_bytes: int | None,
) -> Iterator[Check]:
    if base is None or layers is None:
        yield from without_base()
        return
    missing = len(image.identity.layers) - len(base.identity.layers) - len(layers)
    if missing:
        found = f"{missing} added layers are packed in a way that cannot be read here"
        yield Check(
            "added layers", Outcome.FAIL, found, "verify it with an engine that stores layers unpacked"
        )
    yield from check_layers(layers, stack)
    yield check_size(layers, stack, budget_bytes)
    yield check_history(engine, image, base)


def _self_tests(engine: Engine, image: StoredImage, users: tuple[Runner, ...]) -> Iterator[Check]:
    reason = _not_runnable(engine, image)
    for user in users:
        if reason:
            yield from (not_applicable(f"{subject} as {user.name}", reason) for subject in user.subjects)
            continue
        log.info("running the self test as %s", user.name)
        yield from run_self_test(engine, image.identity.id, user)


def _not_runnable(engine: Engine, image: StoredImage) -> str:
    with errors_told("the engine does not tell its architecture"):
        arch = str(engine.client.api.version().get("Arch", ""))
    arch = _ARCHES.get(arch, arch)
    if image.identity.arch == arch:
        return ""
    return f"the image is for {shown(image.identity.arch)}, the engine runs {shown(arch)}"


def _verification(
    image: StoredImage, base: StoredImage | None, layers: tuple[Layer, ...] | None, checks: tuple[Check, ...]
) -> Verification:
    return Verification(
        image=image.identity.reference,
        id=image.identity.id,
        base=base.identity.reference if base else "",
        added_bytes=sum(layer.size_bytes for layer in layers) if layers is not None else None,
        added_layers=len(layers) if layers is not None else None,
        checks=checks,
    )
