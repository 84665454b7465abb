"""Which of the job's nodes this one is, where every node runs the same command."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from azcp_runtime.contract import UsageError
from azcp_runtime.contract.image import ENV_INDEX

JOB_INDEX: Final = "JOB_COMPLETION_INDEX"
"""Of an Indexed Job's pod; the pods of a JobSet's jobs each have the one within their job."""

_TASK_INDEXES: Final = ("VK_TASK_INDEX", "VC_TASK_INDEX")
"""Volcano's, by its older and its present name."""

_ORDINAL: Final = re.compile(r".+-(0|[1-9]\d{0,8})", re.ASCII)
_WHOLE: Final = re.compile(r"\d{1,9}", re.ASCII)


def own_index(env: Mapping[str, str], name: str, hosts: Sequence[str]) -> int:
    """The place of this node among the hosts.

    The host name goes before the indexes: those of a JobSet's or of Volcano's pods count within a part of
    the job. With host networking the name is the machine's, and the indexes are what there is.

    Args:
        env: the container's.
        name: the host name's first label.
        hosts: all of them.

    Raises:
        UsageError: nothing says it, or what says it is no index of one of the hosts.
    """
    said = env.get(ENV_INDEX, "").strip()
    if said:
        return _checked(_number_of(said), f"{ENV_INDEX} is {said!r}", hosts)
    by_name = index_of_name(name, hosts)
    if by_name is not None:
        return by_name
    for variable in (JOB_INDEX, *_TASK_INDEXES):
        if env.get(variable):
            return _checked(_number_of(env[variable]), f"{variable} is {env[variable]!r}", hosts)
    raise UsageError(
        f"which of the {len(hosts)} hosts this node is cannot be told",
        cause=f"its host name {name} is none of theirs, and neither {ENV_INDEX} nor {JOB_INDEX} is set",
        remedy=f"set {ENV_INDEX} to the index, or to a pod name that ends in it",
    )


def index_of_name(name: str, hosts: Sequence[str]) -> int | None:
    """Which host has this first label; None where none has, or more than one."""
    found = [index for index, host in enumerate(hosts) if host == name or host.split(".")[0] == name]
    return found[0] if len(found) == 1 else None


def ordinal_of(name: str) -> int | None:
    """The number at the end of a pod's name."""
    match = _ORDINAL.fullmatch(name)
    return int(match[1]) if match else None


def _number_of(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else ordinal_of(text)


def _checked(index: int | None, source: str, hosts: Sequence[str]) -> int:
    if index is None or index >= len(hosts):
        raise UsageError(
            f"{source}, and there are {len(hosts)} hosts",
            cause="the first has index 0",
            remedy="look at --hosts",
        )
    return index
