"""How many ranks azcp-launch starts on each node: one, as many as were asked for, or what all can have."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

from azcp_runtime.contract import PreflightError
from azcp_runtime.contract.options import AUTO, Rails
from azcp_runtime.launch.job import Job, say
from azcp_runtime.launch.mpirun import run_mpirun
from azcp_runtime.launch.peers import LostError, Peers
from azcp_runtime.launch.phases import Nodes, survey_arguments
from azcp_runtime.options import parse_options
from azcp_runtime.rails.survey import read_answers, settle
from azcp_runtime.rails.wish import wish_of

_OPTION = "--rails"


def find_rails(job: Job, nodes: Nodes, peers: Peers) -> int | None:
    """The ranks of each node; None where nothing was said of rails, which makes one.

    Raises:
        UsageError: a variable is wrong.
        PreflightError: a node did not answer.
        LostError: a node was lost while it was asked.
    """
    options = parse_options(job.launch.distribute)
    if options.rails != AUTO:
        return options.rails
    devices = wish_of(options.rail_wish, job.env).devices
    if devices:
        say(f"--rails auto: {len(devices)} per node, as devices were named")
        return len(devices)
    rails, why = settle(read_answers(_asked(job, nodes, peers), len(nodes.addresses)))
    say(why)
    return rails


def _asked(job: Job, nodes: Nodes, peers: Peers) -> str:
    """What all nodes say; started as phase 1 is, so that it meets what that would meet."""
    with tempfile.TemporaryFile(dir=job.state) as output:
        arguments = survey_arguments(nodes)
        code = run_mpirun(arguments, job.env, peers.lost, reads_stdin=False, output=output.fileno())
        if code:
            loss = peers.settle()
            if loss:
                raise LostError(loss)
            raise PreflightError(
                f"the nodes cannot be asked for their rails: mpirun ended with {code}",
                remedy="its words are above; --rails N asks nobody",
            )
        output.seek(0)
        return output.read().decode("utf-8", "replace")


def with_rails(words: Sequence[str], rails: Rails | None) -> list[str]:
    """The command line of azcp-distribute with that number, or without any."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == _OPTION:
            next(rest, None)
        elif not word.startswith(f"{_OPTION}="):
            kept.append(word)
    return kept if rails is None else [*kept, _OPTION, str(rails)]
