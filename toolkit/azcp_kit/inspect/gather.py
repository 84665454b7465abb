"""Look at a base image: gather its facts from its config and its files, running nothing of it."""

from __future__ import annotations

from azcp_runtime.contract import PreflightError
from azcp_runtime.contract.image import PREFIX

from azcp_kit.inspect.detect_config import detect_account, detect_config
from azcp_kit.inspect.detect_gpu import detect_gpu
from azcp_kit.inspect.detect_leaks import detect_leaks
from azcp_kit.inspect.detect_libc import detect_lacking, detect_libc
from azcp_kit.inspect.detect_mpi import detect_mpis
from azcp_kit.inspect.detect_parent import PARENT, describe_parent
from azcp_kit.inspect.detect_python import detect_pythons
from azcp_kit.inspect.detect_ssh import detect_ssh
from azcp_kit.inspect.detect_system import detect_packages, detect_shells, detect_system
from azcp_kit.inspect.detect_verbs import detect_verbs
from azcp_kit.inspect.facts import ImageFacts
from azcp_kit.inspect.files import ImageFiles, ImageTree
from azcp_kit.inspect.libraries import Libraries
from azcp_kit.inspect.stored import StoredImage
from azcp_kit.shown import shown


def inspect_image(reference: str, *, pull: bool = False, arch: str = "") -> ImageFacts:
    """The facts of an image of the local engine, pulled first where it is absent and `pull` says so.

    Raises:
        UsageError: there is no such image.
        PreflightError: no engine answers, it fails, or the image is not one of Linux.
    """
    from azcp_kit.engine import connected

    with connected() as engine:
        image = engine.image(reference, pull=pull, arch=arch)
        if image.identity.os != "linux":
            raise PreflightError(
                f"{shown(reference)} is an image for {shown(image.identity.os) or 'no system'}",
                remedy="use a Linux image",
            )
        with engine.probe(image) as files:
            return gather(image, files)


def gather(image: StoredImage, files: ImageFiles) -> ImageFacts:
    """All facts of an image from its config and its files."""
    tree = ImageTree(files)
    libraries = Libraries(tree)
    config = detect_config(image.config)
    return ImageFacts(
        identity=image.identity,
        system=detect_system(tree),
        packages=detect_packages(tree),
        libc=detect_libc(libraries, config.entrypoint),
        lacking=detect_lacking(libraries),
        config=config,
        account=detect_account(config.user, tree),
        shells=detect_shells(tree),
        pythons=detect_pythons(tree, config.env),
        mpis=detect_mpis(libraries, config.env),
        leaks=detect_leaks(config.env),
        ssh=detect_ssh(tree, config.env),
        verbs=detect_verbs(libraries, config.env),
        gpu=detect_gpu(libraries, config.env),
        parent=describe_parent(files.header(PARENT)),
        # Whatever it is: what lies there would be mixed with ours, and run as ours.
        is_injected=files.entry(PREFIX) is not None,
    )
