"""What `azcp-kit render` and `azcp-kit build` do with their options."""

from __future__ import annotations

import logging
import os
import re
import shlex
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

from azcp_runtime.contract import UsageError
from rich.console import Console

from azcp_kit.engine import Engine, connected
from azcp_kit.image.build import BuildRequest, BuildSecret, Built, build_image
from azcp_kit.image.buildx import BuildxBuilder
from azcp_kit.image.classic import ClassicBuilder
from azcp_kit.image.context import Supplies, lay_out
from azcp_kit.image.dockerfile import check_reference, dockerfile
from azcp_kit.image.plan import DEFAULT_BUILDER, Mpi, Rdma, Ssh, Wishes, plan_injection
from azcp_kit.image.push import push_image
from azcp_kit.inspect.facts import ImageFacts
from azcp_kit.inspect.facts_json import read_facts
from azcp_kit.inspect.gather import inspect_image
from azcp_kit.inspect.refuse import refuse
from azcp_kit.payload.archives import cache_folder
from azcp_kit.units import parse_size
from azcp_kit.verify.prove import verify_image
from azcp_kit.verify.table import print_verification

log = logging.getLogger(__name__)

_PLATFORMS: Final = {
    name: arch
    for arch, variant in (("amd64", ""), ("arm64", "/v8"))
    for name in (arch, f"linux/{arch}", f"linux/{arch}{variant}")
}
_SECRET_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_Choice = TypeVar("_Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class BuildCommand:
    """The options of `build` that are not wishes for the image."""

    base: str
    tag: str
    wishes: Wishes
    wheelhouse: Path | None
    engine: str
    pull: bool
    push: bool
    ca: Path | None
    secrets: tuple[str, ...]
    budget: str
    verify: bool


def make_wishes(
    *,
    mpi: str,
    openmpi: str,
    ucx: str,
    mpi_image: str,
    python: str,
    ssh: str,
    rdma: str,
    rdma_core: str,
    platform: str,
    builder: str,
) -> Wishes:
    """The wishes that options stand for.

    Raises:
        UsageError: a word that is none of those an option knows.
    """
    return Wishes(
        mpi=_choice("--mpi", Mpi, mpi),
        openmpi=openmpi,
        ucx=ucx,
        rdma_core=rdma_core,
        mpi_image=mpi_image,
        python=python,
        ssh=_choice("--ssh", Ssh, ssh),
        rdma=_choice("--rdma", Rdma, rdma),
        arches=tuple(_arch(each) for each in platform.split(",")) if platform else (),
        builder=builder or DEFAULT_BUILDER,
    )


def print_dockerfile(base: str, facts_file: Path | None, wishes: Wishes) -> None:
    """The Dockerfile on standard output."""
    facts = _facts(base, facts_file)
    print(dockerfile(plan_injection(facts, wishes), facts), end="")


def write_context(
    base: str, facts_file: Path | None, wishes: Wishes, wheelhouse: Path | None, output: Path
) -> None:
    """The Dockerfile and all that it copies, in a folder that is empty so far.

    Raises:
        UsageError: the folder holds something.
    """
    if output.exists() and any(output.iterdir()):
        raise UsageError(f"{output} is not empty", remedy="name a folder that is, or that does not exist")
    facts = _facts(base, facts_file)
    output.mkdir(parents=True, exist_ok=True)
    lay_out(plan_injection(facts, wishes), facts, Supplies(cache_folder(), wheelhouse), output)
    log.info("next: docker build -t TAG %s", shlex.quote(str(output)))


def run_build(command: BuildCommand, *, quiet: bool) -> str:
    """Build, verify, tell what was added; the image's id.

    Raises:
        AzcpError: the build failed, or the proof did.
    """
    console = Console(stderr=True, quiet=quiet)
    check_reference("--tag", command.tag)
    if command.tag == command.base:
        raise UsageError("--tag is the base's own name", remedy="give the result a name of its own")
    budget_bytes = parse_size(command.budget) if command.budget else None
    secrets = _secrets(command)
    request = BuildRequest(
        base=command.base,
        tag=command.tag,
        wishes=replace(command.wishes, secrets=tuple(secret.id for secret in secrets)),
        supplies=Supplies(cache_folder(), command.wheelhouse),
        pull=command.pull,
        push=command.push,
        secrets=secrets,
        ca=command.ca,
        env=os.environ,
    )
    with connected() as engine:
        built = build_image(request, _builder(command.engine, engine, console))
        _tell(built, console)
        if len(built.plan.arches) > 1:
            log.warning("pushed unproven: pull each platform and give it to azcp-kit verify")
        else:
            if command.verify:
                _prove(engine, built.image_id, command.base, budget_bytes, console)
            engine.tag(built.image_id, command.tag)
            if command.push:
                push_image(engine, command.tag, console)
    tag = shlex.quote(command.tag)
    push = "" if command.push else f"docker push {tag} && "
    log.info("next: %sazcp-kit generate mpijob -f job.toml --set image=%s", push, tag)
    return built.image_id


def _prove(engine: Engine, image_id: str, base: str, budget_bytes: int | None, console: Console) -> None:
    proof = verify_image(engine, image_id, base, budget_bytes)
    print_verification(proof, console)
    if proof.failed:
        log.warning("the image is kept as %s and gets no name", image_id)
    proof.expect_success()


def _builder(name: str, engine: Engine, console: Console) -> ClassicBuilder | BuildxBuilder:
    if name == "docker":
        return ClassicBuilder(engine, console)
    if name == "buildx":
        return BuildxBuilder(console)
    raise UsageError(f"--engine {name} is not known", remedy="docker or buildx")


def _secrets(command: BuildCommand) -> tuple[BuildSecret, ...]:
    if command.secrets and command.engine != "buildx":
        raise UsageError("--secret needs --engine buildx", cause="the engine's own builder has no secrets")
    found = []
    for text in command.secrets:
        name, _, file = text.partition("=")
        if not _SECRET_ID.fullmatch(name) or not Path(file).is_file():
            # What was written may be the secret itself.
            raise UsageError("--secret: write ID=FILE, with a file that exists")
        found.append(BuildSecret(name, Path(file)))
    return tuple(found)


def _tell(built: Built, console: Console) -> None:
    times = f"laid out in {built.layout_s:.1f} s, built in {built.build_s:.1f} s"
    console.print(times, highlight=False, markup=False)


def _facts(base: str, facts_file: Path | None) -> ImageFacts:
    facts = read_facts(facts_file) if facts_file else inspect_image(base)
    if facts.identity.reference != base:
        raise UsageError(f"{facts_file} is about {facts.identity.reference}, not {base}")
    refuse(facts)
    return facts


def _choice(option: str, kind: type[_Choice], text: str) -> _Choice:
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"{option} {text} is not known", remedy=", ".join(kind)) from None


def _arch(platform: str) -> str:
    arch = _PLATFORMS.get(platform.strip())
    if arch is None:
        raise UsageError(f"--platform {platform}: only linux/amd64 and linux/arm64 are known")
    return arch
