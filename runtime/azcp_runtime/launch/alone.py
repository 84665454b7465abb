"""Phase 1 without any peer: the whole data set, by this node and for it."""

from __future__ import annotations

from functools import partial

from azcp_runtime.isolate import command
from azcp_runtime.launch.fanout import Task, run_everywhere
from azcp_runtime.launch.job import Job, note_node, say
from azcp_runtime.launch.rails import with_rails
from azcp_runtime.launch.steps import start_here


def run_alone(job: Job) -> int:
    """The exit code of azcp-distribute."""
    words = [word for word in job.launch.distribute if word != "--no-broadcast"]
    argv = command("azcp-distribute", [*with_rails(words, None), "--no-broadcast"])
    code = run_everywhere([Task("this node", partial(start_here, argv, job.env))], say)
    if code == 0:
        note_node(job)
    return code
