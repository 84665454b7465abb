"""azcp-sshd: each node's side of the remote shell."""

from __future__ import annotations

import argparse
import asyncio
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path

from azcp_runtime.contract import UsageError
from azcp_runtime.contract.image import ENV_SSH_KEYS, ENV_SSH_PORT, IMAGE_SETTINGS, SSH_PORT
from azcp_runtime.launch.arguments import Parser, port_number
from azcp_runtime.ssh.init import fork_if_first
from azcp_runtime.ssh.keys import copy_keys, find_keys
from azcp_runtime.ssh.state import CONTAINER, Surroundings, here, recall, remember, state_dir


def remember_container() -> None:
    """Keep what this process was started with, before it is scrubbed.

    Under its own name until it serves: a second azcp-sshd that does not get that far, such as one
    typed by mistake in a running container, changes nothing for the commands of the first.
    """
    remember(state_dir(os.environ), _starting(), here())


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM; the exit code."""
    state = state_dir(os.environ)
    found = recall(state, _starting()) or here()
    (state / _starting()).unlink(missing_ok=True)
    options = _parser().parse_args(argv)
    container = Surroundings(found.env, found.cwd, options.port)
    # The mount, not the copies of an earlier start: a restarted container may have a new Secret.
    keys = copy_keys(find_keys(found.env, None, options.keys), state)
    fork_if_first()
    if ssh_kind() != "bundled":
        from azcp_runtime.ssh.openssh import become_sshd

        remember(state, CONTAINER, container)
        become_sshd(keys, state, options.listen, options.port)
    from azcp_runtime.ssh.server import Service, serve

    service = Service(keys, container, options.listen, options.port)
    asyncio.run(serve(service, lambda: remember(state, CONTAINER, container)))
    return 0


def _starting() -> str:
    return f"starting-{os.getpid()}.json"


def ssh_kind(settings: Path = Path(IMAGE_SETTINGS)) -> str:
    """bundled, base or package: what the image was built with.

    Raises:
        UsageError: the settings are not what was written at build.
    """
    try:
        kind = tomllib.loads(settings.read_text(encoding="utf-8")).get("ssh", "bundled")
    except FileNotFoundError:
        return "bundled"
    except ValueError as error:
        raise UsageError(f"{settings} is damaged: {error}", remedy="build the image again") from error
    return str(kind)


def _parser() -> argparse.ArgumentParser:
    port = os.environ.get(ENV_SSH_PORT) or str(SSH_PORT)
    parser = Parser(
        prog="azcp-sshd",
        description="Let the other nodes of the job in, with the job's key and nothing else.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--port", type=port_number, default=port, metavar="N", help=f"default {ENV_SSH_PORT}, else {SSH_PORT}"
    )
    add("--listen", default="", metavar="ADDRESS", help="one address instead of all")
    add(
        "--keys",
        default="",
        metavar="DIR",
        help=f"the job's key pair; default {ENV_SSH_KEYS}, else the usual",
    )
    return parser
