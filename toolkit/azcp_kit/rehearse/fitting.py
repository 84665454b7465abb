"""Whether a request and the engine's images fit the plan: asked before anything is started."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Final

from azcp_runtime.contract import PreflightError, UsageError
from azcp_runtime.contract.image import BIN, PREFIX

from azcp_kit.engine import Engine
from azcp_kit.inspect.detect_config import detect_config
from azcp_kit.inspect.stored import StoredImage
from azcp_kit.rehearse.assembly import Image
from azcp_kit.rehearse.plan import Plan
from azcp_kit.rehearse.pod import Container
from azcp_kit.rehearse.request import RehearseRequest
from azcp_kit.shown import shown

ANY_IMAGE: Final = ""


def expect_request(plan: Plan, request: RehearseRequest) -> None:
    """See that every name in the request is one of the manifest's.

    Raises:
        UsageError: some are not; all are named.
    """
    titles = [pod.identity.title for pod in plan.all_pods]
    names = _image_names(plan)
    wrong, known = [], []
    strange = sorted(set(request.images) - {*names, ANY_IMAGE})
    if strange:
        wrong.append(f"--image: no container has the image {', '.join(strange)}")
        known.append(f"the images are {', '.join(names)}")
    for option, pods in (("--late", set(request.late)), ("--kill", {kill.pod for kill in request.kills})):
        if unknown := sorted(pods - set(titles)):
            wrong.append(f"{option}: there is no pod {', '.join(unknown)}")
    if len(wrong) > len(known):
        known.append(f"the pods are {', '.join(titles)}")
    if wrong:
        raise UsageError("; ".join(map(shown, wrong)), remedy=shown("; ".join(known), 2000))


def find_images(engine: Engine, plan: Plan, request: RehearseRequest) -> Mapping[str, Image]:
    """The images of all containers, by the names that the manifest has.

    Raises:
        UsageError: the engine has some of them not; all are named.
        PreflightError: one cannot be pulled, or has not what a container of it begins with.
    """
    found: dict[str, StoredImage] = {}
    absent: dict[str, str] = {}
    for name in _image_names(plan):
        chosen = request.images.get(name) or request.images.get(ANY_IMAGE) or name
        try:
            found[name] = engine.image(chosen, pull=request.pulls)
        except UsageError as error:
            absent[name] = error.what
    if absent:
        named = " ".join(f"--image {shown(name)}=LOCAL" for name in absent)
        raise UsageError(
            "; ".join(dict.fromkeys(absent.values())),
            remedy=f"give {named} for a local image in its place, or --pull",
        )
    _expect_programs(engine, plan, found)
    return {
        name: Image(stored.identity.id, detect_config(stored.config).user) for name, stored in found.items()
    }


def _image_names(plan: Plan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(container.image for pod in plan.all_pods for container in pod.containers))


def _expect_programs(engine: Engine, plan: Plan, found: Mapping[str, StoredImage]) -> None:
    """See that what begins with a program of azcp-kit's is of an image that has it."""
    wanted: dict[str, dict[str, str]] = {}
    for container in _beginning_with_ours(plan):
        wanted.setdefault(container.image, {})[posixpath.normpath(container.command[0])] = container.name
    wrong, bases = [], []
    for name, programs in wanted.items():
        with engine.probe(found[name]) as files:
            absent = [program for program in programs if files.entry(program) is None]
            what = PREFIX if files.entry(PREFIX) is None else ", ".join(absent)
        if absent:
            reference = shown(found[name].identity.reference)
            began = shown(", ".join(programs[program] for program in absent))
            wrong.append(f"{reference} holds no {shown(what)}, with which {began} begins")
            bases.append(f"azcp-kit build --base {reference} --tag NEW, then --image {shown(name)}=NEW")
    if wrong:
        raise PreflightError("; ".join(wrong), remedy="; ".join(bases))


def _beginning_with_ours(plan: Plan) -> Iterator[Container]:
    for pod in plan.all_pods:
        for container in pod.containers:
            program = container.command[0] if container.command else ""
            covered = (f"{mount.path.rstrip('/')}/" for mount in container.mounts)
            if program.startswith(f"{BIN}/") and not any(program.startswith(path) for path in covered):
                yield container
