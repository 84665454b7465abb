"""What `azcp-kit tree` does with its options: from an image of the local engine into a folder or a tar."""

from __future__ import annotations

import json
import logging
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PreflightError, UsageError
from azcp_runtime.contract.image import IMAGE_SETTINGS, MANIFEST, PREFIX

from azcp_kit.inspect.container_files import ContainerFiles
from azcp_kit.shown import shown
from azcp_kit.tree.folder import put_folder, writable_target
from azcp_kit.tree.tar import put_tar, send_tar

_LARGEST_BYTES: Final = 1 << 20
_BUNDLED: Final = "bundled"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TreeCommand:
    """One call.

    Args:
        image: of the local engine, which azcp-kit has injected.
        output: a folder, a file that ends in .tar, or - for standard output.
        pulls: pull the image where it is absent.
        arch: of the nodes; empty for the image's own.
    """

    image: str
    output: str
    pulls: bool
    arch: str


def run_tree(command: TreeCommand) -> None:
    """Put the tree there.

    Raises:
        UsageError: the image has no tree, or something of somebody else's is in the place.
        PreflightError: no engine answers, or it failed.
    """
    from azcp_kit.engine import connected, errors_told

    target = Path(command.output)
    is_tar = target.suffix == ".tar"
    _expect_place(command.output, target, is_tar=is_tar)
    with connected() as engine:
        image = engine.image(command.image, pull=command.pulls, arch=command.arch)
        if command.arch and image.identity.arch != command.arch:
            raise UsageError(f"{shown(command.image)} is for {image.identity.arch}, not for {command.arch}")
        what = f"{PREFIX} of {shown(command.image)} cannot be read"
        with engine.probe(image) as files, errors_told(what):
            version = _version(files, command.image)
            with files.chunks(PREFIX) as chunks:
                _put(command.output, target, chunks, is_tar=is_tar)
            _tell(files, f"{version}, linux/{image.identity.arch}", command.output)


def _expect_place(output: str, target: Path, *, is_tar: bool) -> None:
    """Refuse before the image is looked at."""
    if output == "-":
        if sys.stdout.isatty():
            raise UsageError(
                "a tar would go to the terminal", remedy=f"add | tar -x -C {Path(PREFIX).parent}"
            )
    elif not is_tar:
        writable_target(target)
    elif target.exists():
        raise UsageError(f"{target} exists", remedy="give another --output, or remove it")


def _put(output: str, target: Path, chunks: Iterator[bytes], *, is_tar: bool) -> None:
    if output == "-":
        send_tar(chunks)
    elif is_tar:
        put_tar(chunks, target)
    else:
        put_folder(chunks, target)


def _version(files: ContainerFiles, image: str) -> str:
    """Of the azcp-kit that has made the tree."""
    if files.entry(MANIFEST) is None:
        raise UsageError(f"{shown(image)} has no {MANIFEST}", remedy="inject it with `azcp-kit build` first")
    try:
        return shown(str(json.loads(files.read(MANIFEST, _LARGEST_BYTES))["version"]))
    except (ValueError, KeyError, TypeError) as error:
        raise PreflightError(f"{MANIFEST} of {shown(image)} is damaged", remedy="build it again") from error


def _tell(files: ContainerFiles, what: str, output: str) -> None:
    log.info("%s: %s (azcp-kit %s)", shown(output), PREFIX, what)
    if output != "-" and Path(output).absolute() != Path(PREFIX):
        log.info("next: have it at %s on every node, bound or copied; it works at no other path", PREFIX)
    for part in _of_the_image(files):
        log.warning(
            "%s is the image's own and stays there: nodes need one too, or build with --%s bundled",
            part,
            part,
        )


def _of_the_image(files: ContainerFiles) -> tuple[str, ...]:
    """What the tree expects of the system that it is on, beyond a C library."""
    if files.entry(IMAGE_SETTINGS) is None:
        return ()
    try:
        settings = tomllib.loads(files.read(IMAGE_SETTINGS, _LARGEST_BYTES).decode())
    except ValueError:  # the runtime refuses it with the reason
        return ()
    return tuple(part for part in ("ssh", "rdma") if settings.get(part) in ("base", "package"))
