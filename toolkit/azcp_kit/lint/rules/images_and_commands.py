"""What a container runs: whose command it is, and whether it waits for others with an end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.manifest import Manifest
from azcp_kit.lint.pods import Pod
from azcp_kit.lint.setup import Setup
from azcp_kit.lint.shell import Command

ARGS_WITHOUT_COMMAND: Final = Rule(
    "K104-args-without-command",
    Severity.ERROR,
    why="args alone are handed to the image's ENTRYPOINT: a server takes them for its own options, and an"
    " entry script prints a banner or waits",
    fix="give the program in `command`, its arguments in `args`",
)
UNBOUNDED_WAIT: Final = Rule(
    "K107-wait-without-end",
    Severity.WARNING,
    why="with one dead peer the loop spins for ever, holds the nodes, and never says which peer is missing",
    fix="count the tries or compare with a deadline, then name the peer and exit non-zero;"
    " azcp-launch does that by itself",
)
NO_READINESS: Final = Rule(
    "K108-worker-without-readiness",
    Severity.WARNING,
    why="without a probe a worker counts as ready once it runs, long before its sshd answers; the launcher"
    " then fails and uses up its retries",
    fix="give the worker container a readinessProbe with tcpSocket on sshd's port",
)
NO_WAIT_FOR_WORKERS: Final = Rule(
    "K109-launcher-does-not-wait",
    Severity.WARNING,
    why="the launcher starts while workers still pull their image, and its retries go by",
    fix="set launcherCreationPolicy: WaitForWorkersReady, with a readinessProbe on the workers",
)

_REACHING: Final = (
    "nc", "ncat", "ssh", "nslookup", "host", "dig", "getent", "ping", "curl", "wget", "kubectl",
    "ssh-keyscan",
)  # fmt: skip
_LONGEST_LOOP: Final = 50
"""Commands of a loop that waits; no such loop has as many."""
_ENDS: Final = re.compile(r"\b(?:break|exit|return|timeout|SECONDS|deadline)\b|\(\(|-(?:lt|le|gt|ge)\b")


def args_without_command(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """A list of options is what an ENTRYPOINT is there for; a program's name is not."""
    for container in pod.containers:
        arguments = container.node.at("args")
        first = next((item.text for item in arguments.items), "")
        is_option = first.startswith("-") and not re.fullmatch(r"-[a-z]*c", first)
        if not arguments or container.node.at("command") or "{{" in first:
            continue
        severity = Severity.NOTE if is_option else Severity.ERROR
        what = f"container {named(container.name)} has args but no command"
        yield ARGS_WITHOUT_COMMAND.at(arguments.line, what, severity=severity)


def worker_readiness(pod: Pod, _manifest: Manifest) -> Iterator[Finding]:
    """Only an operator's workers: peers that find each other by themselves have no launcher to hold back."""
    if pod.kind != "MPIJob" or pod.role != "Worker":
        return
    policy = pod.owner.at("spec", "launcherCreationPolicy")
    if not any(container.node.at("readinessProbe") for container in pod.containers):
        yield NO_READINESS.at(pod.template.line, "no worker container has a readinessProbe")
    if policy.text != "WaitForWorkersReady":
        yield NO_WAIT_FOR_WORKERS.at(
            (policy or pod.owner.at("spec")).line, "launcherCreationPolicy is not WaitForWorkersReady"
        )


def unbounded_wait(setup: Setup) -> Iterator[Finding]:
    """`until` and `while !` around something that reaches a peer, with no way out of the body."""
    commands = setup.script.commands
    for place, command in enumerate(commands):
        if command.texts[0] not in {"until", "while"} or not command.runs(*_REACHING):
            continue
        is_negated = command.texts[0] == "until" or "!" in command.texts
        if is_negated and not any(_ENDS.search(" ".join(body.texts)) for body in _loop(commands, place)):
            yield UNBOUNDED_WAIT.at(command.line, f"{setup.title} waits in a loop that has no end")


def _loop(commands: tuple[Command, ...], start: int) -> Iterator[Command]:
    """The commands from a loop's condition to its `done`."""
    depth = 0
    for command in islice(commands, start, start + _LONGEST_LOOP):
        depth += command.texts[0] in {"until", "while", "for", "select"}
        depth -= command.texts[0] == "done"
        yield command
        if depth == 0:
            return


POD_RULES: Final = (args_without_command, worker_readiness)
SETUP_RULES: Final = (unbounded_wait,)
