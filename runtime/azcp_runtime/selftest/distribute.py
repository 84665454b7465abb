"""Two ranks of this image, each a node, distribute a small folder to two destinations."""

from __future__ import annotations

import dataclasses
from typing import Final

from azcp_runtime.contract import ENV_PROGRESS, ENV_SIMULATE_NODES
from azcp_runtime.contract.selftest import Subject
from azcp_runtime.isolate import command
from azcp_runtime.selftest.answer import Answer, fail, ok
from azcp_runtime.selftest.data import differences, make_folder
from azcp_runtime.selftest.trial import Surroundings, run
from azcp_runtime.selftest.watch import Watch

NODES: Final = 2
_LIMIT_S: Final = 90.0
_OPTIONS: Final = ("--verify", "--expect-ranks", str(NODES), "--memory", "64MiB", "--stall-timeout", "30")


def prove_distribute(where: Surroundings, watch: Watch) -> Answer:
    """Whether the bytes arrive; the processes are looked at meanwhile."""
    watch.expect("mpirun", 1)
    watch.expect("azcp-distribute", NODES, "/libmpi.so")
    source, dest = where.work / "source", where.work / "dest"
    make_folder(source)
    ranks = command("azcp-mpirun", ["-n", str(NODES)])
    argv = [*ranks, *command("azcp-distribute", [str(source), str(dest), *_OPTIONS])]
    env = {**where.env, ENV_SIMULATE_NODES: str(NODES), ENV_PROGRESS: "none"}
    ended = run(argv, dataclasses.replace(where, env=env), _LIMIT_S, watch.look)
    if ended.code != 0:
        return fail(Subject.DISTRIBUTE, [f"{NODES} ranks: {ended}"], "run azcp-doctor in the image")
    wrong = [
        f"node{node}: {text}" for node in range(NODES) for text in differences(source, dest / f"node{node}")
    ]
    if wrong:
        return fail(Subject.DISTRIBUTE, wrong, "this image must not be used: it writes wrong files")
    return ok(Subject.DISTRIBUTE, f"{NODES} ranks put a folder at {NODES} destinations, byte for byte")
