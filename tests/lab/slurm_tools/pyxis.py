"""srun with the options of pyxis: they are taken out, and the task is entered by this very program."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from tests.lab.slurm_tools.root import OWN, Bind, RefusedError, enter, read_image

SRUN: Final = "/usr/bin/srun"
_FLAGS: Final = ("writable", "readonly", "entrypoint", "mount-home", "remap-root")
_VALUED: Final = ("image", "mounts", "env", "workdir")
_TASK: Final = f"{OWN}PYXIS"


def main(argv: Sequence[str]) -> int:
    """On the node of the script, or as a task."""
    try:
        if _TASK in os.environ and argv[:1] == ["--as-task"]:
            _task(json.loads(os.environ[_TASK]), list(argv[1:]))
        return _submit(list(argv))
    except RefusedError as error:
        print(f"pyxis: {error}", file=sys.stderr)
        return 1


def _submit(argv: list[str]) -> int:
    at = next((at for at, word in enumerate(argv) if not word.startswith("-")), len(argv))
    own = [word for word in argv[:at] if word.startswith(("--container-", "--no-container-"))]
    rest, command = [word for word in argv[:at] if word not in own], argv[at:]
    if not own:
        os.execv(SRUN, [SRUN, *argv])  # noqa: S606 - an argument list, no shell
    options = parse(own)
    # Slurm looks for a command without a slash on the host, before there is a container.
    if "/" not in command[0] and shutil.which(command[0]) is None:
        raise RefusedError(f"execve(): {command[0]}: No such file or directory")
    os.environ[_TASK] = json.dumps(options)
    os.execv(SRUN, [SRUN, *rest, sys.argv[0], "--as-task", *command])  # noqa: S606 - an argument list, no shell


def parse(words: Sequence[str]) -> dict[str, str]:
    """The options by their names without --container-; flags are yes or no.

    Raises:
        RefusedError: one is unknown, is given with two values, or needs one.
    """
    options: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        flag = name.removeprefix("--no-container-").removeprefix("--container-")
        if flag in _FLAGS and not equals:
            value = "no" if name.startswith("--no-") else "yes"
        elif flag not in _VALUED or not value:
            raise RefusedError(f"{word}: unrecognized option, or argument required")
        if options.setdefault(flag, value) != value:
            raise RefusedError(f"{name} specified multiple times")
    for entry in options.get("mounts", "").split(",") if "mounts" in options else ():
        read_mount(entry)
    return options


def read_mount(entry: str) -> Bind:
    """SRC:DST[:FLAGS], as the plugin splits it.

    Raises:
        RefusedError: it is none.
    """
    source, _, rest = entry.partition(":")
    target, _, flags = rest.partition(":")
    target = target if rest else source
    if not source or not target:
        raise RefusedError(f"--container-mounts: invalid format: {entry}")
    for path in (source, target):
        if path[0] not in "./":
            raise RefusedError(f"mount source and target must be paths: {path}")
        # It becomes a field of an fstab.
        if any(character.isspace() or character in '"\\#' for character in path):
            raise RefusedError(f"could not mount: invalid fstab entry: {path}")
    return Bind(source, target, flags.split("+") if flags else [])


def _task(options: Mapping[str, str], command: Sequence[str]) -> None:
    image = read_image(options["image"])
    binds = [read_mount(entry) for entry in options.get("mounts", "").split(",") if entry]
    kept = set(options.get("env", "").split(","))
    of_image = {name: value for name, value in image.env.items() if name not in kept}
    entrypoint = image.entrypoint if options.get("entrypoint") == "yes" else []
    enter(
        image,
        binds,
        is_writable=options.get("writable") == "yes",
        env={**os.environ, **of_image},
        argv=[*entrypoint, *command],
    )
