"""The command line of azcp-launch, and everything in it that cannot be meant, told at once."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_runtime.contract import UsageError
from azcp_runtime.contract.image import ENV_NODE_NAME, ENV_SSH_PORT, SSH_PORT
from azcp_runtime.launch.arguments import Parser, count, port_number, seconds
from azcp_runtime.options import Options, parse_options

NODES: Final = "nodes"
LAUNCHER: Final = "launcher"

_MASTER_PORT: Final = 29500
"""torchrun's own default."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One command line of azcp-launch.

    Args:
        hosts: --hosts; None where it is absent, for an empty one is a mistake.
        hostfile: --hostfile.
        nodes: --nodes, how many there must be.
        is_every_node: --every-node, each of them runs this very command.
        key_seed: --key-seed, a file or - from which all nodes make the same key pair; None to find one.
        wait_s: how long the nodes may take to answer.
        alone_after_s: after what time peers that do not answer are left out; None for never.
        port: of their ssh servers.
        master_port: what MASTER_PORT is set to.
        node_file: where the machine's name is written after phase 1.
        command_on: NODES or LAUNCHER.
        distribute: the command line of azcp-distribute.
        words: the user's command; empty for none.
    """

    hosts: str | None
    hostfile: Path | None
    nodes: int | None
    is_every_node: bool
    key_seed: str | None
    wait_s: float
    alone_after_s: float | None
    port: int
    master_port: int
    node_file: Path | None
    command_on: str
    distribute: Sequence[str]
    words: Sequence[str]


def parse_launch(argv: Sequence[str], env: Mapping[str, str]) -> Launch:
    """The command line, with what azcp-distribute will be told checked here and now.

    Raises:
        UsageError: an option of either command is wrong; all that is wrong is named.
    """
    words = list(argv)
    cut = words.index("--") if "--" in words else len(words)
    own, rest = _parser(env).parse_known_args(words[:cut])
    command = words[cut + 1 :]
    problems = []
    options = None
    try:
        options = parse_options(rest)
    except UsageError as error:
        problems.append(error.what)
    problems = [*_contradictions(own, options, command, env), *problems]
    if problems:
        raise UsageError("; ".join(problems), remedy="see azcp-launch --help and azcp-distribute --help")
    return Launch(
        hosts=own.hosts,
        hostfile=own.hostfile,
        nodes=own.nodes,
        is_every_node=own.every_node,
        key_seed=own.key_seed,
        wait_s=own.wait,
        alone_after_s=own.alone_after,
        port=own.port,
        master_port=own.master_port,
        node_file=own.node_file,
        command_on=own.command_on or NODES,
        distribute=rest,
        words=command,
    )


def is_whole(distribute: Sequence[str]) -> bool:
    """Whether azcp-distribute was asked to put the data in place, and not to stop before it has."""
    return _is_whole(parse_options(distribute))


def _is_whole(options: Options) -> bool:
    return not options.dry_run and options.stage == "all"


def _contradictions(
    own: argparse.Namespace, options: Options | None, command: Sequence[str], env: Mapping[str, str]
) -> Sequence[str]:
    names_nodes = own.hosts is not None or own.hostfile is not None
    has_words = bool(command)
    rules = (
        (
            own.key_seed is not None and not own.every_node,
            "--key-seed is for nodes that each run this command: it needs --every-node",
        ),
        (own.hosts is not None and own.hostfile is not None, "--hosts and --hostfile both name the nodes"),
        (
            own.alone_after is not None and names_nodes and not own.every_node,
            "--alone-after is for nodes that each run this command: it needs --every-node",
        ),
        (
            own.alone_after is not None and has_words,
            "--alone-after is for data alone: COMMAND would start without its peers",
        ),
        (
            own.alone_after is not None and options is not None and options.expect_ranks is not None,
            "--alone-after leaves peers out, and --expect-ranks wants their number",
        ),
        (
            own.node_file is not None and names_nodes and not own.every_node,
            "--node-file is for nodes that each run this command: it needs --every-node",
        ),
        (
            own.node_file is not None and not env.get(ENV_NODE_NAME, "").strip(),
            f"--node-file needs {ENV_NODE_NAME} in the environment, from the pod's spec.nodeName",
        ),
        (
            own.node_file is not None and options is not None and not _is_whole(options),
            "--node-file says where the data is, and --dry-run and --stage leave it incomplete",
        ),
        (own.command_on is not None and not has_words, "--command-on needs a COMMAND after --"),
    )
    return [text for is_broken, text in rules if is_broken]


def _parser(env: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = Parser(
        prog="azcp-launch",
        usage="azcp-launch SOURCE DEST [options] [-- COMMAND ...]",
        description="Put SOURCE on every node, then run COMMAND once on each of them.",
        epilog="What is not listed here goes to azcp-distribute: see azcp-distribute --help. Without --hosts "
        "and --hostfile the nodes are found by Slurm's step, by mpi-operator's hostfile, by Volcano's "
        "variables, or by the service of an Indexed Job, JobSet or StatefulSet together with --nodes.",
        allow_abbrev=False,
    )
    _add_nodes(parser)
    _add_waiting(parser, env.get(ENV_SSH_PORT) or str(SSH_PORT))
    _add_command(parser)
    return parser


def _add_nodes(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the nodes").add_argument
    add("--hosts", metavar="A,B[0-7],C", help="in the order of their ranks; a[00-15].svc is a range")
    add(
        "--hostfile",
        type=Path,
        metavar="FILE",
        help="the same from a file, one per line; slots do not matter",
    )
    add("--nodes", type=count, metavar="N", help="how many there must be")
    add(
        "--every-node",
        action="store_true",
        help="each of them runs this command: number 0 leads, the others serve until it is done",
    )
    add(
        "--key-seed",
        metavar="FILE",
        help="32 random bytes, the same on all nodes, which become their key pair; - is standard input",
    )
    add(
        "--node-file",
        type=Path,
        metavar="FILE",
        help=f"once the data is in place write {ENV_NODE_NAME} there, on every node",
    )


def _add_waiting(parser: argparse.ArgumentParser, port: str) -> None:
    add = parser.add_argument_group("waiting for them").add_argument
    add("--wait", type=seconds, default=600.0, metavar="S", help="how long the nodes may take; default 600")
    add(
        "--alone-after",
        type=seconds,
        metavar="S",
        help="after S seconds leave out who has not come; without any peer download alone",
    )
    add("--port", type=port_number, default=port, metavar="N", help=f"of azcp-sshd; default {SSH_PORT}")


def _add_command(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("COMMAND").add_argument
    add(
        "--command-on",
        choices=(NODES, LAUNCHER),
        help="once per node with RANK and MASTER_ADDR (default), or once where azcp-launch runs or leads, "
        "to start the nodes by an mpirun of its own",
    )
    add("--master-port", type=port_number, default=_MASTER_PORT, metavar="N", help="for COMMAND")
