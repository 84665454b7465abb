"""The emulator for a batch script, and what of a request and a script does not go together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PreflightError, UsageError

from azcp_kit.azurite import find_azurite, run_azurite
from azcp_kit.rehearse.account import Emulator
from azcp_kit.rehearse.cargo import Cargo, upload_cargo
from azcp_kit.rehearse.request import RehearseRequest
from azcp_kit.rehearse.slurm.script import BatchScript
from azcp_kit.shown import shown

_MOST_NODES: Final = 3
_REAL: Final = re.compile(r"[^\s\"']*\.(?:blob|dfs)\.(?:core\.|storage\.)[^\s\"']*")


def node_number(script: BatchScript, request: RehearseRequest) -> int:
    """How many nodes it is rehearsed with: what is asked for, else the script's own number, but a few."""
    return request.nodes or min(script.nodes, _MOST_NODES)


def expect_fitting(script: BatchScript, request: RehearseRequest, *, is_local: bool) -> None:
    """See that the script can be rehearsed as it is asked for.

    Raises:
        UsageError: it cannot; all reasons are named.
        PreflightError: the emulator is missing.
    """
    wrong = list(_wrong(script, request, is_local=is_local))
    if wrong:
        raise UsageError("; ".join(wrong))
    if script.sources and find_azurite() is None:
        raise PreflightError(
            "the Azurite Blob emulator is not installed", remedy="install Node.js and run `make clean venv`"
        )


def _wrong(script: BatchScript, request: RehearseRequest, *, is_local: bool) -> Iterator[str]:
    if request.late or request.kills:
        yield "--late and --kill are for the pods of a manifest"
    if not script.source:
        yield "no azcp-launch or azcp-distribute in the script has a source and a destination in plain words"
    elif not script.sources and not script.source.startswith("/"):
        yield f"the source {shown(script.source)} is no account's"
    if is_local and script.source.startswith("/"):
        yield "a folder as the source is rehearsed on containers alone: give --image IMAGE"
    if not is_local and len(set(request.images.values())) != 1:
        yield (
            "no Slurm answers here: give --image IMAGE, which azcp-kit has built, for containers"
            if not request.images
            else "a batch script is rehearsed with one --image"
        )


def expect_no_real_account(text: str) -> None:
    """See that nothing in the copy leads to a real account.

    Raises:
        UsageError: something does, such as a name that only a run makes.
    """
    if match := _REAL.search(text):
        raise UsageError(
            f"the script's account cannot be exchanged in {shown(match[0])}",
            remedy="write the URL of the source as one word, without variables in its host",
        )


@contextmanager
def account_for(script: BatchScript, cargo: Cargo, address: str, work: Path) -> Iterator[Emulator]:
    """The emulator at that address of this machine, with the data set in it."""
    accounts = tuple(dict.fromkeys(source.account for source in script.sources))
    if not accounts:
        yield Emulator(f"http://{address}", "")
        return
    with run_azurite(work / "azurite", host=address, accounts=accounts) as azurite:
        upload_cargo(cargo, azurite, script.sources, work / "upload")
        yield Emulator(azurite.endpoint.rpartition("/")[0], azurite.key)
