"""Containers of pyxis and enroot: images, mounts, and whose environment wins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.sbatch import Batch
from azcp_kit.lint.settings import Way
from azcp_kit.lint.shell_words import Word

IMAGE_WINS: Final = Rule(
    "S301-image-environment-wins",
    Severity.WARNING,
    why="pyxis lets a variable of the image win over the job's: what the script exports has no effect if the"
    " image defines it too",
    fix="set it inside the step, or name it in --container-env",
)
MOUNTS_TWICE: Final = Rule(
    "S302-mounts-given-twice",
    Severity.ERROR,
    why="only the last --container-mounts counts",
    fix="merge them into one list with commas",
)
BAD_MOUNT: Final = Rule(
    "S303-mount-cannot-be-written",
    Severity.ERROR,
    why="mounts are split at commas and colons, and their flags at plus signs; there is no way to escape one",
    fix="rename the folder, or mount a link without such characters",
)
MOUNT_MAY_BE_ABSENT: Final = Rule(
    "S304-mount-may-be-absent",
    Severity.NOTE,
    why="the step fails on nodes without the device",
    fix="add the mount only where /dev/infiniband exists",
)
IMPORTED_EACH_TIME: Final = Rule(
    "S305-image-imported-by-each-step",
    Severity.WARNING,
    why="every node imports the image at every step, into a cache that may lie in memory: 20 GB fill /run or"
    " /tmp, and the registry throttles",
    fix="import it once with `enroot import` to a .sqsh file on shared storage, and name that file",
)
NO_REGISTRY_SIGN: Final = Rule(
    "S306-registry-without-number-sign",
    Severity.ERROR,
    why="enroot separates the registry from the path by #; with a slash it looks on Docker Hub",
    fix="write REGISTRY#PATH:TAG",
)
ENTRYPOINT: Final = Rule(
    "S307-entrypoint-not-switched-off",
    Severity.WARNING,
    why="where pyxis runs entry points, the image's own prints banners, waits, or takes the command"
    " as its arguments",
    fix="add --no-container-entrypoint to this step",
)
UNQUOTED: Final = Rule(
    "S308-unquoted-variable",
    Severity.NOTE,
    why="a value with a space becomes two arguments",
    fix="put it in double quotes",
)

_SENSITIVE: Final = re.compile(r"(?:OMPI_|PMIX_|UCX_|NCCL_|LD_|OPAL_).*")
_REGISTRY: Final = re.compile(r"(?:docker://)?(?:[^/@]+@)?[\w-]+(?:\.[\w-]+)+(?::\d+)?/.*", re.ASCII)
_MOUNT_FIELDS: Final = 3
"""SOURCE:TARGET:FLAGS."""
_KIT: Final = ("azcp-cluster", "azcp-distribute", "azcp-launch")


def image_wins(batch: Batch) -> Iterator[Finding]:
    """Variables that images define, exported outside of the container."""
    steps = [step for step in batch.steps if step.container_image]
    lists = (value.text for step in steps for _, value in step.command.options("--container-env") if value)
    named_in_env = set(",".join(lists).split(","))
    last_line = max((step.line for step in steps), default=0)
    for setting in batch.setup.settings:
        is_outside = setting.way is Way.SCRIPT and setting.command and setting.command.within is None
        if (
            is_outside
            and setting.line <= last_line
            and _SENSITIVE.fullmatch(setting.name)
            and setting.name not in named_in_env
        ):
            yield IMAGE_WINS.at(setting.line, f"{named(setting.name)} is set outside of the container")


def mounts(batch: Batch) -> Iterator[Finding]:
    """One list of mounts, of names that can be written in it."""
    for step in batch.steps:
        lists = [value for _, value in step.command.options("--container-mounts") if value]
        if len(lists) > 1:
            yield MOUNTS_TWICE.at(lists[1].line, f"--container-mounts is given {len(lists)} times")
        for words in lists:
            yield from _mount_list(words)


def _mount_list(words: Word) -> Iterator[Finding]:
    if "/dev/infiniband" in words.text:
        yield MOUNT_MAY_BE_ABSENT.at(words.line, "/dev/infiniband is mounted on every node")
    if words.is_split:
        yield UNQUOTED.at(words.line, "--container-mounts holds an unquoted variable")
    for mount in words.text.split(","):
        fields = re.sub(r"\$\{[^}]{0,200}\}|\$\([^)]{0,200}\)", "x", mount).split(":")
        if len(fields) > _MOUNT_FIELDS or any(" " in part for part in fields) or not mount:
            yield BAD_MOUNT.at(words.line, f"the mount {named(mount)} is split in the wrong places")


def images(batch: Batch) -> Iterator[Finding]:
    """Where the image of a step comes from."""
    for step in batch.steps:
        word = step.command.option("--container-image")
        image = batch.script.value(word) if word else None
        if word is None or image is None or image.startswith(("/", ".")) or image.endswith(".sqsh"):
            continue
        yield IMPORTED_EACH_TIME.at(word.line, f"the step imports {named(image)}")
        if "#" not in image and _REGISTRY.fullmatch(image):
            yield NO_REGISTRY_SIGN.at(word.line, f"{named(image)} has no # after its registry")


def imports(batch: Batch) -> Iterator[Finding]:
    """The URI of an `enroot import`."""
    for command in batch.script.commands:
        if not command.runs("enroot"):
            continue
        for word in command.words:
            if word.text.startswith("docker://") and "#" not in word.text and _REGISTRY.fullmatch(word.text):
                yield NO_REGISTRY_SIGN.at(word.line, f"{named(word.text)} has no # after its registry")


def entrypoint(batch: Batch) -> Iterator[Finding]:
    """The entry point of an image, in the distributor's own step; the user's step keeps theirs."""
    for step in batch.steps:
        options = step.command.texts
        chosen = "--no-container-entrypoint" in options or "--container-entrypoint" in options
        if step.container_image and step.runs(*_KIT) and not chosen:
            yield ENTRYPOINT.at(step.line, "the distributor's step does not say --no-container-entrypoint")


BATCH_RULES: Final = (image_wins, mounts, images, imports, entrypoint)
