"""The nodes of a rehearsed batch script as containers: one image, one network, a folder that all share."""

from __future__ import annotations

import json
import posixpath
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.contract.image import PREFIX, PYTHON

from azcp_kit.engine import Engine, errors_told
from azcp_kit.inspect.stored import StoredImage
from azcp_kit.rehearse.archive import opened
from azcp_kit.rehearse.slurm.order import run_order, wait_until_up
from azcp_kit.rehearse.slurm.payload import (
    BIN,
    NODE,
    SCRIPT,
    SHARED,
    STEPS,
    SUBMIT,
    Files,
    files_in,
    shared_files,
)
from azcp_kit.rehearse.slurm.said import Said
from azcp_kit.rehearse.slurm.stand_ins.variables import script_variables
from azcp_kit.rehearse.slurm.stand_ins.wire import Job
from azcp_kit.rehearse.station import Mounts, Station
from azcp_kit.shown import shown

_PORT: Final = 6818
_FIRST_JOB: Final = 1000
_JOBS: Final = 9000
_ROOT: Final = "0:0"
_USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BASH: Final = "/bin/bash"


def make_job(name: str, nodes: int, *, until_distributed: bool) -> Job:
    """The job, as all stand-ins know it."""
    names = tuple(f"node{index + 1}" for index in range(nodes))
    return Job(
        number=_FIRST_JOB + secrets.randbelow(_JOBS),
        name=name,
        nodes=names,
        addresses=tuple(f"{node}:{_PORT}" for node in names),
        token=secrets.token_hex(16),
        until_distributed=until_distributed,
    )


def find_image(engine: Engine, name: str, *, pulls: bool) -> StoredImage:
    """The image of all nodes.

    Raises:
        UsageError: the engine has it not.
        PreflightError: it cannot be pulled, or lacks what a node needs.
    """
    image = engine.image(name, pull=pulls)
    with engine.probe(image) as files:
        absent = [path for path in (PREFIX, _BASH) if files.entry(path) is None]
    if absent:
        raise PreflightError(
            f"{shown(name)} holds no {' and no '.join(absent)}",
            remedy="give an image that azcp-kit build has made, from a base with bash",
        )
    return image


@dataclass(frozen=True, slots=True)
class Node:
    """A container that stands for one."""

    name: str
    container: str
    address: str


class Crew:
    """All nodes of one job."""

    def __init__(self, place: Station, image: StoredImage, job: Job, data_folder: str) -> None:
        self._place = place
        self._image = image
        self._job = job
        self._data_folder = data_folder
        self._holder = ""
        self.nodes: list[Node] = []

    def start(self, script: str, files: Files, trees: bytes | None) -> None:
        """Make the nodes and have them wait for tasks.

        Args:
            script: the copy that is run.
            files: for every node, by their paths.
            trees: the same, as a tar.

        Raises:
            PreflightError: the engine refuses.
        """
        shared = self._place.volume()
        for name in self._job.nodes:
            self.nodes.append(self._make(name, shared))
        content = files_in(f"{shared}/", shared_files(self._job, script), ("submit", "steps"))
        own = files_in("", {path.lstrip("/"): entry for path, entry in files.items()})
        with errors_told("the nodes cannot be filled"):
            self._place.api.put_archive(self._holder, "/v", content)
            for node in self.nodes:
                for tar in (own, trees):
                    if tar is not None:
                        self._place.api.put_archive(node.container, "/", tar)
        for node in self.nodes:
            self._place.start(node.container)

    def _make(self, name: str, shared: str) -> Node:
        data, memory = self._place.volume(), self._place.volume(0)
        holder, address = self._place.holder(name, (name,), (shared,))
        self._holder = holder
        mounts: Mounts = [
            _mount(shared, SHARED),
            _mount(memory, "/dev/shm"),  # noqa: S108 - the node's own
            *([_mount(data, self._data_folder)] if self._data_folder else []),
        ]
        container = self._place.container(
            holder,
            self._image.identity.id,
            mounts,
            {},
            entrypoint=[PYTHON, "-I", NODE, SHARED, f"0.0.0.0:{_PORT}"],
            command=[],
            user=_ROOT,
            working_dir=SUBMIT,
        )
        return Node(name, container, address)

    def run(self, tasks_per_node: int, env: dict[str, str], said: Said, timeout_s: float) -> int | None:
        """The script on the first node once all are up, to its end; its code, or None where it took too long.

        Raises:
            PreflightError: a node does not answer, or the first is gone.
        """
        own = _image_environment(self._image)
        environment = {
            **own,
            **script_variables(self._job, tasks_per_node, SUBMIT),
            "PATH": f"{BIN}:{own.get('PATH') or _USUAL_PATH}",
            "HOME": "/root",
            **env,
        }
        order = {"token": self._job.token, "argv": [SCRIPT], "env": environment, "cwd": SUBMIT}
        first, *others = self.nodes
        for node in others:
            wait_until_up(node.name, (node.address, _PORT))
        return run_order(first.name, (first.address, _PORT), order, said, timeout_s)

    def steps(self) -> dict[int, dict[str, object]]:
        """What srun's stand-in has written of each step that has ended."""
        found = {}
        with errors_told("the steps cannot be read"):
            stream, _ = self._place.api.get_archive(self.nodes[0].container, STEPS)
            with opened(stream) as tar:
                for member in tar:
                    number, file = posixpath.split(member.name)
                    content = tar.extractfile(member) if member.isreg() else None
                    if file == "end.json" and content is not None:
                        found[int(posixpath.basename(number))] = json.loads(content.read())
        return found

    def data(self, node: Node, path: str) -> Iterator[bytes]:
        """What lies at a path of a node, as a tar stream.

        Raises:
            PreflightError: nothing is there.
        """
        with errors_told(f"nothing can be read at {shown(path)}"):
            stream, _ = self._place.api.get_archive(node.container, path)
        return iter(stream)


def _image_environment(image: StoredImage) -> dict[str, str]:
    """What a container of it has without anybody's doing."""
    pairs = image.config.get("Env")
    return dict(str(pair).partition("=")[::2] for pair in pairs) if isinstance(pairs, list) else {}


def _mount(volume: str, path: str) -> dict[str, Any]:
    return {"Type": "volume", "Source": volume, "Target": path, "VolumeOptions": {"NoCopy": True}}
