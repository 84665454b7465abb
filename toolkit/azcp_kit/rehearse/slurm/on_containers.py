"""A batch script on containers of this machine, where no Slurm is: its own words, by stand-ins for srun."""

from __future__ import annotations

import posixpath
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from azcp_runtime.contract import ENV_SAS, ExitCode, PreflightError

from azcp_kit.engine import connected
from azcp_kit.rehearse.account import Emulator
from azcp_kit.rehearse.archive import tree_tar
from azcp_kit.rehearse.cargo import Cargo, differences, make_cargo
from azcp_kit.rehearse.conduct import Report
from azcp_kit.rehearse.fabric import text_without_rdma
from azcp_kit.rehearse.outcome import NodeData, Outcome
from azcp_kit.rehearse.request import RehearseRequest, Until
from azcp_kit.rehearse.slurm.account import (
    account_for,
    expect_fitting,
    expect_no_real_account,
    node_number,
)
from azcp_kit.rehearse.slurm.conclude import End, conclude, read_steps
from azcp_kit.rehearse.slurm.crew import Crew, find_image, make_job
from azcp_kit.rehearse.slurm.edits import Edits, edited
from azcp_kit.rehearse.slurm.said import Said, first_reason
from azcp_kit.rehearse.slurm.script import BatchScript
from azcp_kit.rehearse.slurm.unshown import unshown_on_containers
from azcp_kit.rehearse.station import station
from azcp_kit.shown import shown

_SECRET = 0o600
_PLAIN = 0o644
_IMAGE = b"the image is that of --image\n"


def rehearse_on_containers(script: BatchScript, request: RehearseRequest, report: Report) -> Outcome:
    """Run the script on as many containers as it has nodes, to its end.

    Raises:
        UsageError: it cannot be rehearsed.
        PreflightError: the engine, the image or the emulator is missing, or fails.
    """
    expect_fitting(script, request, is_local=False)
    nodes = node_number(script, request)
    (name,) = set(request.images.values())
    with connected() as engine, tempfile.TemporaryDirectory(prefix="azcp-rehearse-") as folder:
        image = find_image(engine, name, pulls=request.pulls)
        cargo = make_cargo(Path(folder) / "data", request.size_bytes)
        with (
            station(engine) as place,
            account_for(script, cargo, place.gateway, Path(folder)) as emulator,
        ):
            job = make_job(script.name, nodes, until_distributed=request.until is Until.DISTRIBUTED)
            above = posixpath.dirname(script.destination)
            crew = Crew(place, image, job, script.destination if above == "/" else above)
            text = text_without_rdma(edited(script, Edits(nodes, emulator, "", {}, "")))
            expect_no_real_account(text)
            crew.start(text, _files(script, emulator), _tree(script, cargo))
            return _conduct(script, request, crew, cargo, emulator, report)


def _conduct(
    script: BatchScript,
    request: RehearseRequest,
    crew: Crew,
    cargo: Cargo,
    emulator: Emulator,
    report: Report,
) -> Outcome:
    began = time.monotonic()

    def clock() -> float:
        return time.monotonic() - began

    said = Said(emulator, clock, report)
    report(clock(), "script", f"started on {crew.nodes[0].name} of {len(crew.nodes)}")
    env = {ENV_SAS: emulator.sas(script.sources[0].account)} if _needs_sas(script) else {}
    code = crew.run(script.tasks_per_node, env, said, request.timeout_s)
    took_s = clock()
    report(took_s, "script", "was given up" if code is None else f"ended with {code}")
    data = tuple(_node_data(crew, cargo, script, index) for index in range(len(crew.nodes)))
    is_good = code == ExitCode.DONE
    late = f"not done within {request.timeout_s:.0f} s"
    end = End(
        title=f"job of {len(crew.nodes)} containers",
        nodes=",".join(node.name for node in crew.nodes),
        phase="ended" if code is not None else "running",
        code=code,
        is_good=is_good,
        reason="" if is_good else late if code is None else first_reason(code, said.lines),
        notices=(),
        started_s=0.0,
        ended_s=took_s,
        took_s=took_s,
        steps=read_steps(crew.steps()),
    )
    return conclude(script, len(crew.nodes), cargo, said, end, data, unshown_on_containers(script))


def _needs_sas(script: BatchScript) -> bool:
    return bool(script.sources) and not script.sas_files


def _files(script: BatchScript, emulator: Emulator) -> dict[str, tuple[int, bytes]]:
    """What every node has where the script looks for it."""
    found = dict.fromkeys(script.image_files, (_PLAIN, _IMAGE))
    if script.sources:
        sas = emulator.sas(script.sources[0].account).encode()
        found |= dict.fromkeys(script.sas_files, (_SECRET, sas))
    return found


def _tree(script: BatchScript, cargo: Cargo) -> bytes | None:
    """The data set where the source is a folder."""
    return tree_tar(script.source.strip("/"), cargo.folder) if script.source.startswith("/") else None


def _node_data(crew: Crew, cargo: Cargo, script: BatchScript, index: int) -> NodeData:
    node = crew.nodes[index]
    found: Sequence[str]
    try:
        found = differences(cargo, crew.data(node, script.destination))
    except PreflightError as error:
        found = (shown(str(error)),)
    return NodeData(node.name, node.name, shown(script.destination), tuple(found))
