"""azcp-launch on a node that does not lead: the ssh server, and what comes of no leader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from azcp_runtime.contract import ExitCode, PreflightError
from azcp_runtime.launch.alone import run_alone
from azcp_runtime.launch.job import Job, note_node, say
from azcp_runtime.launch.member import Post, Serve, follow_leader
from azcp_runtime.launch.network import MissingError, resolve
from azcp_runtime.ssh.daemon import ssh_kind
from azcp_runtime.ssh.keys import JobKeys, copy_keys, find_keys
from azcp_runtime.ssh.state import CONTAINER, Surroundings, remember

LISTEN: Final = ""
"""On every address: which of them the leader comes by is not known here."""


def follow(job: Job) -> int:
    """Serve until the leader is done; its exit code.

    Raises:
        PreflightError: no leader came, or this node cannot serve.
    """
    # The mount, not the copies of an earlier start: a restarted container may have a new Secret.
    keys = copy_keys(job.keys or find_keys(job.container.env, None), job.state)
    launch = job.launch
    patience_s = launch.wait_s if launch.alone_after_s is None else launch.alone_after_s
    post = Post(job.leader, patience_s, partial(note_node, job), say)
    ending = follow_leader(post, job.state, _server(job, keys))
    if ending:
        say("done, as the leader is" if ending.code == ExitCode.DONE else ending.text)
        return ending.code
    if launch.alone_after_s is not None:
        say(f"the leader {job.leader} did not come within {patience_s:.0f} s: this node downloads alone")
        return run_alone(job)
    raise PreflightError(
        f"the leader {job.leader} did not come within {patience_s:.0f} s",
        cause=_seen_of(job.leader, launch.port),
        remedy="look at its log; --wait gives it more time",
    )


def _seen_of(leader: str, port: int) -> str:
    try:
        return f"its name is that of {asyncio.run(resolve(leader, port))}"
    except MissingError as missing:
        return f"its name {missing}"


def _server(job: Job, keys: JobKeys) -> Serve:
    port = job.launch.port
    container = Surroundings(job.container.env, job.container.cwd, port)

    async def serve(ready: Callable[[], None], stopped: asyncio.Event) -> None:
        def answering() -> None:
            remember(job.state, CONTAINER, container)
            ready()

        if ssh_kind() != "bundled":
            from azcp_runtime.ssh import openssh

            await openssh.serve_until(openssh.sshd_argv(keys, job.state, LISTEN, port), answering, stopped)
            return
        from azcp_runtime.ssh import server

        await server.serve_until(server.Service(keys, container, LISTEN, port), answering, stopped)

    return serve
