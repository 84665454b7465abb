"""azcp-launch: one command from the launcher to all nodes, first the data, then the user's own program."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from azcp_runtime.contract import ENV_SAS, ExitCode, InterruptedRunError, UsageError
from azcp_runtime.contract.image import ENV_SSH_PORT, SSH_PORT
from azcp_runtime.launch.arguments import Parser, port_number, seconds
from azcp_runtime.launch.hosts import InFile, Listed, check_distinct, find_hosts
from azcp_runtime.launch.mpirun import run_mpirun
from azcp_runtime.launch.network import Login, Network
from azcp_runtime.launch.phases import ALONE, Nodes, distribute_arguments, expectation, hostfile_text
from azcp_runtime.launch.steps import run_steps
from azcp_runtime.launch.wait import Wish, wait_for
from azcp_runtime.options import parse_options
from azcp_runtime.ssh.keys import find_keys, parse_private
from azcp_runtime.ssh.state import LAUNCHER, here, remember, state_dir, write_private

_MASTER_PORT: Final = 29500
"""torchrun's own default."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One command line of azcp-launch.

    Args:
        hosts: --hosts; None where it is absent, for an empty one is a mistake.
        hostfile: --hostfile.
        wait_s: how long the nodes may take to answer.
        port: of their ssh servers.
        master_port: what MASTER_PORT is set to.
        distribute: the command line of azcp-distribute.
        words: the user's command; empty for none.
    """

    hosts: str | None
    hostfile: Path | None
    wait_s: float
    port: int
    master_port: int
    distribute: Sequence[str]
    words: Sequence[str]


def remember_launcher() -> None:
    """Keep what azcp-launch was started with, before it is scrubbed: its node may have no azcp-sshd."""
    remember(state_dir(os.environ), LAUNCHER, here())


def main(argv: Sequence[str]) -> int:
    """Both phases; phase 1's exit code where it fails, else that of the user's command."""
    env = dict(os.environ)
    launch = without_secret(parse_launch(argv, env), env)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stopped)
    state = state_dir(env)
    nodes = _meet(launch, state, env)
    env[ENV_SSH_PORT] = str(launch.port)
    count = len(nodes.addresses)
    distribute = [*launch.distribute, *expectation(launch.distribute, count)]
    code = phase_one_code(run_mpirun(distribute_arguments(nodes, distribute, env), env, reads_stdin=False))
    if code or not launch.words:
        return code
    if not is_whole(launch.distribute):
        say(f"{launch.words[0]} is not started: --dry-run and --stage leave the data incomplete")
        return code
    say(f"{launch.words[0]} starts on {count} node{'s' if count > 1 else ''}")
    return run_steps(nodes, launch.port, launch.master_port, launch.words, say)


def without_secret(launch: Launch, env: dict[str, str]) -> Launch:
    """The same with a SAS of SOURCE in the environment: on a command line every user of a node reads it."""
    source = parse_options(launch.distribute).source
    address, _, query = source.partition("?")
    if not address.startswith(("http://", "https://")) or not query:
        return launch
    env[ENV_SAS] = query
    distribute = [address if word == source else word for word in launch.distribute]
    return replace(launch, distribute=distribute)


def phase_one_code(code: int) -> int:
    """What phase 1 ends with: azcp-distribute's own code, or 6 where mpirun lost a node and made one up."""
    if code in set(ExitCode):
        return code
    say(
        f"a node or its connection was lost (mpirun ended with {code}); look at the node named above; "
        "whole files are kept, and the same command with --compare size goes on"
    )
    return ExitCode.BROADCAST


def is_whole(distribute: Sequence[str]) -> bool:
    """Whether azcp-distribute was asked to put the data in place, and not to stop before it has."""
    options = parse_options(distribute)
    return not options.dry_run and options.stage == "all"


def _stopped(number: int, _frame: FrameType | None) -> NoReturn:
    # As process 1 of a container it would else not even be heard.
    raise InterruptedRunError(f"stopped by {signal.Signals(number).name}")


def say(text: str) -> None:
    """One line of talk."""
    print(f"azcp-launch: {text}", file=sys.stderr, flush=True)


def parse_launch(argv: Sequence[str], env: Mapping[str, str]) -> Launch:
    """The command line, with what azcp-distribute will be told checked here and now.

    Raises:
        UsageError: an option of either command is wrong.
    """
    words = list(argv)
    cut = words.index("--") if "--" in words else len(words)
    own, rest = _parser(env).parse_known_args(words[:cut])
    if own.hosts is not None and own.hostfile is not None:
        raise UsageError("--hosts and --hostfile both name the nodes", remedy="give one of them")
    parse_options(rest)
    return Launch(own.hosts, own.hostfile, own.wait, own.port, own.master_port, rest, words[cut + 1 :])


def _meet(launch: Launch, state: Path, env: Mapping[str, str]) -> Nodes:
    hosts = find_hosts((Listed(launch.hosts), InFile(launch.hostfile)))
    hostfile = state / "hostfile"
    if hosts:
        network = Network(_login(launch.port, state, env))
        nodes = Nodes(wait_for(Wish(hosts, launch.port, launch.wait_s), network, say), hostfile)
        check_distinct(nodes.addresses)
    else:
        say("this node alone: neither --hosts nor --hostfile names others")
        nodes = Nodes({ALONE: "127.0.0.1"}, hostfile)
    write_private(hostfile, hostfile_text(nodes).encode("ascii"))
    return nodes


def _login(port: int, state: Path, env: Mapping[str, str]) -> Login:
    from azcp_runtime.ssh.client import CONNECT_TIMEOUT_S, Peer, connect, own_user

    keys = find_keys(env, state)
    parse_private(keys)  # a key that cannot be used is no node's fault

    async def login(address: str) -> None:
        connection = await connect(Peer(address, port, own_user()), keys, CONNECT_TIMEOUT_S)
        connection.abort()

    return login


def _parser(env: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = Parser(
        prog="azcp-launch",
        usage="azcp-launch SOURCE DEST [options] [-- COMMAND ...]",
        description="Put SOURCE on every node, then run COMMAND once on each of them.",
        epilog="What is not listed here goes to azcp-distribute: see azcp-distribute --help.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--hosts", metavar="A,B,C", help="the nodes, in the order of their ranks")
    add(
        "--hostfile",
        type=Path,
        metavar="FILE",
        help="the same from a file, one per line; slots do not matter",
    )
    add("--wait", type=seconds, default=600.0, metavar="S", help="how long the nodes may take; default 600")
    port = env.get(ENV_SSH_PORT) or str(SSH_PORT)
    add("--port", type=port_number, default=port, metavar="N", help=f"of azcp-sshd; default {SSH_PORT}")
    add("--master-port", type=port_number, default=_MASTER_PORT, metavar="N", help="for COMMAND")
    return parser
