"""Builds the image: inspect, refuse, plan, lay the context out, and hand it to an engine."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from azcp_runtime.contract import UsageError

from azcp_kit.image.context import Supplies, lay_out
from azcp_kit.image.plan import InjectPlan, Wishes, plan_injection, plan_lines
from azcp_kit.inspect.facts import ImageFacts
from azcp_kit.inspect.gather import inspect_image
from azcp_kit.inspect.refuse import refuse
from azcp_kit.shown import shown

log = logging.getLogger(__name__)

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY")


@dataclass(frozen=True, slots=True)
class BuildSecret:
    """A file that a build step may read at /run/secrets/ID, and that no layer keeps."""

    id: str
    file: Path


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What `azcp-kit build` was asked for.

    Args:
        base: the image to inject into.
        tag: the name of the result.
        wishes: what to inject.
        supplies: where the parts come from.
        pull: whether to pull the base where it is absent.
        push: whether to push the result.
        secrets: for steps in the builder stages, with buildx alone.
        ca: a private CA's certificates in PEM, for the builder alone.
        env: where proxies are read.
    """

    base: str
    tag: str
    wishes: Wishes
    supplies: Supplies
    pull: bool = False
    push: bool = False
    secrets: tuple[BuildSecret, ...] = ()
    ca: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Built:
    """The result: its id where the engine holds it, and how long laying out and building took."""

    image_id: str
    facts: ImageFacts
    plan: InjectPlan
    layout_s: float
    build_s: float


class Builder(Protocol):
    """An engine that turns a context into an image."""

    def build(self, context: Path, request: BuildRequest, plan: InjectPlan) -> str:
        """Build; the image's id. One platform has no name so far."""


def build_image(request: BuildRequest, builder: Builder) -> Built:
    """The injected image.

    Raises:
        AzcpError: the base is refused, a part cannot be had, or the engine failed; its last lines are told.
    """
    facts = inspect_image(request.base, pull=request.pull)
    began = time.monotonic()
    with laid_out(facts, request) as (context, plan):
        for line in plan_lines(plan):
            log.info("%s", shown(line))
        laid_out_at = time.monotonic()
        image_id = builder.build(context, request, plan)
    return Built(image_id, facts, plan, laid_out_at - began, time.monotonic() - laid_out_at)


@contextmanager
def laid_out(facts: ImageFacts, request: BuildRequest) -> Iterator[tuple[Path, InjectPlan]]:
    """The context in a folder of its own, which is gone afterwards, and the plan it follows.

    Raises:
        AzcpError: the base is refused, or a part cannot be had.
    """
    arches = request.wishes.arches
    refuse(facts, arch=arches[0] if len(arches) == 1 else "")
    plan = plan_injection(facts, request.wishes)
    ca = _certificates(request.ca) if request.ca is not None else ""
    with tempfile.TemporaryDirectory(prefix="azcp-context-") as work:
        lay_out(plan, facts, request.supplies, Path(work))
        if ca and plan.builder:
            place = Path(work, "build/ca.pem")
            place.write_text(ca, encoding="ascii")
            place.chmod(0o644)
        yield Path(work), plan


def build_arguments(env: Mapping[str, str]) -> dict[str, str]:
    """The proxies of this environment, which builders know and keep out of the image and its history."""
    names = [name for proxy in _PROXIES for name in (proxy, proxy.lower())]
    return {name: env[name] for name in names if env.get(name)}


def _certificates(source: Path) -> str:
    try:
        text = source.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--ca {source} cannot be read: {error}") from error
    if "-----BEGIN CERTIFICATE-----" not in text or "PRIVATE KEY" in text:
        raise UsageError(f"--ca {source} must hold certificates in PEM and nothing else")
    return text
