"""A rehearsal from the manifest to its outcome: plan, network, account, pods, comparison, removal."""

from __future__ import annotations

import posixpath
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PreflightError

from azcp_kit.azurite import Azurite, find_azurite, run_azurite
from azcp_kit.engine import connected
from azcp_kit.rehearse.account import Emulator
from azcp_kit.rehearse.archive import folder_tar, tree_tar
from azcp_kit.rehearse.cargo import Cargo, make_cargo, upload_cargo
from azcp_kit.rehearse.conduct import Conductor, Report
from azcp_kit.rehearse.fate import Fate
from azcp_kit.rehearse.fitting import expect_request, find_images
from azcp_kit.rehearse.kubelet import Kubelet
from azcp_kit.rehearse.outcome import Outcome
from azcp_kit.rehearse.plan import Plan, Task, make_plan
from azcp_kit.rehearse.pod import Pod
from azcp_kit.rehearse.request import RehearseRequest
from azcp_kit.rehearse.secrecy import make_censor
from azcp_kit.rehearse.station import Station, station
from azcp_kit.rehearse.volumes import Sort
from azcp_kit.rehearse.witness import Witness

_ACCOUNT: Final = "rehearsal"


def rehearse(request: RehearseRequest, report: Report) -> Outcome:
    """Run the manifest's own pods here, to their end.

    Args:
        request: what is asked for.
        report: told of each step.

    Raises:
        UsageError: the manifest is none, or has nothing to be rehearsed.
        PreflightError: the engine, an image or the emulator is missing, or fails.
    """
    plan = make_plan(request.manifest, request.nodes)
    expect_request(plan, request)
    if find_azurite() is None and plan.sources:
        raise PreflightError(
            "the Azurite Blob emulator is not installed", remedy="install Node.js and run `make clean venv`"
        )
    with connected() as engine, tempfile.TemporaryDirectory(prefix="azcp-rehearse-") as folder:
        images = find_images(engine, plan, request)
        work = Path(folder)
        cargo = make_cargo(work / "data", request.size_bytes)
        with station(engine) as place, _account(place, plan, cargo, work) as emulator:
            account = plan.sources[0].account if plan.sources else _ACCOUNT
            kubelet = Kubelet(place, plan.store, emulator, account, images, work)
            censor = make_censor(plan, emulator)

            def tell(at_s: float, pod: str, what: str) -> None:
                report(at_s, pod, censor(what))

            conductor = Conductor(plan, request, kubelet, tell, _prepared(plan, kubelet, cargo))
            began_at = time.time()
            took_s = conductor.run()
            witness = Witness(plan, kubelet, cargo, censor, began_at)
            return witness.outcome(conductor.courses, request.until, took_s)


@contextmanager
def _account(place: Station, plan: Plan, cargo: Cargo, work: Path) -> Iterator[Emulator]:
    """The emulator on the network's address of this machine, with the data set in it."""
    accounts = tuple(dict.fromkeys(source.account for source in plan.sources))
    if not accounts:
        yield Emulator(f"http://{place.gateway}", "")
        return
    with run_azurite(work / "azurite", host=place.gateway, accounts=accounts) as azurite:
        upload_cargo(cargo, azurite, plan.sources, work / "upload")
        yield _emulator(azurite)


def _emulator(azurite: Azurite) -> Emulator:
    return Emulator(azurite.endpoint.rpartition("/")[0], azurite.key)


def _prepared(plan: Plan, kubelet: Kubelet, cargo: Cargo) -> Callable[[Fate], None]:
    """What is done with each pod before its first container: a folder that is a source gets the data set."""
    filled: set[str] = set()

    def prepare(fate: Fate) -> None:
        for task in plan.tasks:
            if task.pod is not fate.pod or fate.sandbox is None:
                continue
            for volume, part in _source_volume(task, fate.pod):
                name = fate.sandbox.volumes[volume]
                if name not in filled:
                    filled.add(name)
                    for depth in range(len(part)):
                        folder = posixpath.join(name, *part[: depth + 1])
                        kubelet.disks.put(fate.sandbox, folder_tar(folder, 0o755, None))
                    kubelet.disks.put(fate.sandbox, tree_tar(posixpath.join(name, *part), cargo.folder))

    return prepare


def _source_volume(task: Task, pod: Pod) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The volume in which a source lies that is a folder, and where in it."""
    source = posixpath.normpath(task.distribution.source)
    for mount in sorted(task.container.mounts, key=lambda mount: len(mount.path), reverse=True):
        below = source.removeprefix(mount.path)
        if source.startswith("/") and source.startswith(mount.path) and below[:1] in ("", "/"):
            if pod.volumes[mount.volume].sort in (Sort.FOLDER, Sort.MEMORY):
                parts = [part for part in (*mount.sub_path.split("/"), *below.split("/")) if part]
                yield mount.volume, tuple(parts)
            return
