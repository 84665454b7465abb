"""A batch script on the Slurm of this machine: a copy is submitted, followed, compared and taken away."""

from __future__ import annotations

import logging
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from azcp_runtime.contract import ENV_SAS, PreflightError

from azcp_kit.rehearse.account import Emulator
from azcp_kit.rehearse.cargo import Cargo, make_cargo
from azcp_kit.rehearse.conduct import Report
from azcp_kit.rehearse.outcome import NodeData, Outcome
from azcp_kit.rehearse.request import RehearseRequest, Until
from azcp_kit.rehearse.slurm.account import (
    account_for,
    expect_fitting,
    expect_no_real_account,
    node_number,
)
from azcp_kit.rehearse.slurm.compare import Place, compare_nodes
from azcp_kit.rehearse.slurm.conclude import End, conclude
from azcp_kit.rehearse.slurm.edits import Edits, edited, own_destination
from azcp_kit.rehearse.slurm.follow import DISTRIBUTED, Followed, Follower
from azcp_kit.rehearse.slurm.said import Said, first_reason
from azcp_kit.rehearse.slurm.script import BatchScript
from azcp_kit.rehearse.slurm.site import address_for_nodes
from azcp_kit.rehearse.slurm.submit import cancel, job_state, submit
from azcp_kit.rehearse.slurm.unshown import unshown_anywhere
from azcp_kit.shown import shown

_OWN: Final = ".azcp-rehearsal-"

log = logging.getLogger(__name__)


def rehearse_on_slurm(script: BatchScript, request: RehearseRequest, report: Report) -> Outcome:
    """Run the script as a job of the local Slurm, to its end.

    Raises:
        UsageError: it cannot be rehearsed.
        PreflightError: something that it takes is missing, or Slurm refuses it.
    """
    expect_fitting(script, request, is_local=True)
    nodes = node_number(script, request)
    address = address_for_nodes()
    began = time.monotonic()

    def clock() -> float:
        return time.monotonic() - began

    with tempfile.TemporaryDirectory(prefix="azcp-rehearse-") as folder, _shared() as shared:
        cargo = make_cargo(Path(folder) / "data", request.size_bytes)
        with account_for(script, cargo, address, Path(folder)) as emulator:
            said = Said(emulator, clock, report)
            destination = own_destination(script, f"azcp-rehearsal-{secrets.token_hex(4)}")
            number = _submit(script, shared, emulator, nodes, destination)
            try:
                followed = Follower(number, shared / "log", said, clock, report).follow(
                    request.timeout_s, until_distributed=request.until is Until.DISTRIBUTED
                )
            finally:
                _expect_over(number, destination)
            title = f"job {number}"
            place = Place(followed.nodes, destination, shared, script.admission)
            data = _compare(place, cargo, title) if followed.nodes else ()
            end = _end(title, followed, said, clock())
            return conclude(script, nodes, cargo, said, end, data, unshown_anywhere(script))


@contextmanager
def _shared() -> Iterator[Path]:
    """A folder that the nodes see: below the one from which the job is submitted, as its log would be."""
    folder = Path.cwd() / f"{_OWN}{secrets.token_hex(4)}"
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise PreflightError(
            f"{shown(str(folder.parent))} cannot be written to: {error.strerror}",
            remedy="rehearse in a folder that all nodes share, where you would submit the job",
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _submit(script: BatchScript, shared: Path, emulator: Emulator, nodes: int, destination: str) -> int:
    account = script.sources[0].account
    sas = emulator.sas(account)
    own = shared / "sas"
    if script.sas_files:
        own.touch(mode=0o600)
        own.write_text(sas, encoding="utf-8")
    edits = Edits(
        nodes=nodes,
        emulator=emulator,
        destination=destination,
        sas_files=dict.fromkeys(script.sas_files, str(own)),
        credential="" if script.sas_files else ENV_SAS,
    )
    text = edited(script, edits)
    expect_no_real_account(text)
    file = shared / "script"
    file.touch(mode=0o700)
    file.write_text(text, encoding="utf-8")
    return submit(script, file, shared / "log", "" if script.sas_files else sas)


def _expect_over(number: int, destination: str) -> None:
    """End the job, however the rehearsal has ended."""
    state = job_state(number)
    if state is not None and not state.is_over:
        cancel(number)
        log.warning("job %d is cancelled; %s may be left behind on its nodes", number, shown(destination))


def _compare(place: Place, cargo: Cargo, title: str) -> tuple[NodeData, ...]:
    try:
        return compare_nodes(place, cargo, title)
    except PreflightError as error:
        return (NodeData(title, shown(place.nodes), shown(place.path), (shown(str(error), 600),)),)


def _end(title: str, followed: Followed, said: Said, took_s: float) -> End:
    state = followed.state
    name = state.state if state else "UNKNOWN"
    is_cut = followed.given_up == DISTRIBUTED
    is_good = name == "COMPLETED" or (is_cut and name == "CANCELLED")
    reason = ""
    if not is_good:
        waits = f"; Slurm says {state.reason}" if state and followed.started_s is None else ""
        reason = f"{followed.given_up or _why(name, state.code if state else 1, said)}{waits}"
    notices = []
    if followed.started_s is not None and not said.lines:
        notices.append("nothing came from the job's log: rehearse in a folder that all nodes share")
    return End(
        title=title,
        nodes=followed.nodes,
        phase=name,
        code=state.code if state and not followed.given_up else None,
        is_good=is_good,
        reason=reason,
        notices=tuple(notices),
        started_s=followed.started_s,
        ended_s=followed.ended_s,
        took_s=took_s,
        restarts=state.restarts if state else 0,
    )


def _why(name: str, code: int, said: Said) -> str:
    return first_reason(code, said.lines) if name == "FAILED" else f"Slurm says {name}"
