"""azcp-launch where it leads: the nodes are met, the data goes to all, then the user's command runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import AzcpError, ExitCode
from azcp_runtime.launch.alone import run_alone
from azcp_runtime.launch.fanout import LOST, run_everywhere
from azcp_runtime.launch.hosts import check_distinct
from azcp_runtime.launch.job import Job, note_node, say
from azcp_runtime.launch.mpirun import run_mpirun
from azcp_runtime.launch.native import run_native
from azcp_runtime.launch.network import Network
from azcp_runtime.launch.options import LAUNCHER, is_whole
from azcp_runtime.launch.peers import LostError, Nobody, Peers, Workers
from azcp_runtime.launch.phases import ALONE, Nodes, distribute_arguments, expectation, hostfile_text
from azcp_runtime.launch.rails import find_rails, with_rails
from azcp_runtime.launch.steps import step_tasks
from azcp_runtime.launch.wait import Wish, wait_for
from azcp_runtime.scrub import scrub
from azcp_runtime.ssh.keys import copy_keys, find_keys
from azcp_runtime.ssh.names import remember_names
from azcp_runtime.ssh.state import write_private

_OF_DISTRIBUTE: Final = frozenset(ExitCode) - {
    ExitCode.DONE,
    ExitCode.FAULT,
    ExitCode.BROADCAST,
    ExitCode.RESUMABLE,
}
"""What azcp-distribute ends with for reasons that no loss of a node explains."""


_GO_ON: Final = "the run is resumable: the same command goes on from there"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended.

    Args:
        code: the exit code.
        text: in a few words, for the members.
    """

    code: int
    text: str


def lead(job: Job) -> int:
    """Both phases; phase 1's exit code where it fails, else that of the user's command.

    Raises:
        AzcpError: a node is missing, or cannot be used.
    """
    peers = _peers(job)
    outcome = Outcome(ExitCode.FAULT, "a fault of azcp-launch")
    try:
        outcome = _both_phases(job, peers)
    except LostError as error:
        say(str(error))
        outcome = Outcome(error.loss.code, str(error))
    except AzcpError as error:
        outcome = Outcome(error.exit_code, scrub(str(error), job.env))
        raise
    finally:
        peers.end(outcome.code, outcome.text)
    return outcome.code


def _peers(job: Job) -> Peers:
    if not job.found.hosts:
        return Nobody()
    if job.found.own is None:
        return Workers(job.launch.port, find_keys(job.env, job.state))
    from azcp_runtime.launch.crew import Crew

    # The mount, not the copies of an earlier start: a restarted container may have a new Secret.
    keys = copy_keys(job.keys or find_keys(job.container.env, None), job.state)
    return Crew(job.launch.port, keys, len(job.found.hosts))


def _both_phases(job: Job, peers: Peers) -> Outcome:
    nodes = _meet(job, peers)
    peers.begin(nodes.others)
    if job.launch.alone_after_s is not None and not nodes.others:
        say("no other node came: this one downloads alone")
        return Outcome(run_alone(job), "alone")
    outcome = _phase_one(job, nodes, peers)
    if outcome.code:
        return outcome
    words = job.launch.words
    if not is_whole(job.launch.distribute):
        if words:
            say(f"{words[0]} is not started: --dry-run and --stage leave the data incomplete")
        return outcome
    peers.confirm()
    note_node(job)
    if not words:
        return outcome
    return _phase_two(job, nodes, peers)


def _meet(job: Job, peers: Peers) -> Nodes:
    launch, hosts = job.launch, job.found.hosts
    hostfile = job.state / "hostfile"
    if not hosts:
        nodes = Nodes({ALONE: "127.0.0.1"}, hostfile, ALONE)
    else:
        network = Network(peers.meet, is_met=peers.is_met)
        own = "" if job.found.own is None else hosts[job.found.own]
        may_leave_out = launch.alone_after_s is not None
        deadline_s = launch.wait_s if launch.alone_after_s is None else launch.alone_after_s
        wish = Wish(hosts, launch.port, deadline_s, own, needs_all=not may_leave_out)
        addresses = wait_for(wish, network, say)
        if own and own not in addresses:  # it does not find itself, so no other would
            addresses = {own: "127.0.0.1"}
        check_distinct(addresses)
        own = own or next((host for host, found in addresses.items() if network.is_local(found)), "")
        nodes = Nodes(addresses, hostfile, own)
    write_private(hostfile, hostfile_text(nodes).encode("ascii"))
    remember_names(job.state, nodes.addresses)
    return nodes


def _phase_one(job: Job, nodes: Nodes, peers: Peers) -> Outcome:
    rails = find_rails(job, nodes, peers)
    words = with_rails(job.launch.distribute, rails)
    ranks = rails or 1
    words += expectation(words, len(nodes.addresses) * ranks)
    arguments = distribute_arguments(nodes, words, job.env, ranks)
    code = run_mpirun(arguments, job.env, peers.lost, reads_stdin=False)
    loss = peers.settle() if code and code not in _OF_DISTRIBUTE else None
    if loss:
        say(f"{loss.host}: {loss.reason}; {_GO_ON}")
        return Outcome(loss.code, f"{loss.host}: {loss.reason}")
    return Outcome(phase_one_code(code), f"azcp-distribute ended with {code}")


def phase_one_code(code: int) -> int:
    """What phase 1 ends with: azcp-distribute's own code, or 6 where mpirun lost a node and made one up."""
    if code in set(ExitCode):
        return code
    say(
        f"a node or its connection was lost (mpirun ended with {code}); look at the node named above; "
        f"{_GO_ON}"
    )
    return ExitCode.BROADCAST


def _phase_two(job: Job, nodes: Nodes, peers: Peers) -> Outcome:
    launch, count = job.launch, len(nodes.addresses)
    name, many = launch.words[0], f"{count} node{'s' if count > 1 else ''}"
    if launch.command_on == LAUNCHER:
        say(f"{name} starts here, for {many}")
        return Outcome(run_native(job, nodes, peers.lost), f"the end of {name}")
    say(f"{name} starts on {many}")
    tasks = step_tasks(nodes, launch.port, launch.master_port, launch.words)
    code = run_everywhere(tasks, say, peers.lost)
    loss = peers.settle() if code == LOST or peers.lost.done() else None
    if loss and code in (LOST, loss.code):
        return Outcome(loss.code, f"{loss.host}: {loss.reason}")
    return Outcome(code, f"the end of {name}")
