"""Images that the toolkit has injected, for tests of what runs inside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from azcp_kit.engine import connected
from azcp_kit.image.build import BuildRequest, build_image
from azcp_kit.image.classic import ClassicBuilder
from azcp_kit.image.context import Supplies
from azcp_kit.image.plan import Rdma, Ssh, Wishes
from docker import DockerClient
from rich.console import Console

from tests.lab.bases import Bases
from tests.lab.interpreter import interpreter_archive

REPOSITORY: Final = "azcp-kit-lab-injected"


@dataclass
class Injected:
    """Called with a base's name and an ssh server's kind, it gives the injected image's id."""

    docker: DockerClient
    bases: Bases
    folder: Path

    def __post_init__(self) -> None:
        self._known: dict[tuple[str, Ssh], str] = {}

    def __call__(self, name: str, ssh: Ssh = Ssh.BUNDLED) -> str:
        """Built when first asked for; the code of this checkout is in it."""
        if (name, ssh) not in self._known:
            self._known[name, ssh] = self._build(name, ssh)
        return self._known[name, ssh]

    def remove(self) -> None:
        """Take the images away again."""
        for image_id in self._known.values():
            self.docker.images.remove(image_id, force=True)

    def _build(self, name: str, ssh: Ssh) -> str:
        request = BuildRequest(
            base=self.bases(name),
            tag=f"{REPOSITORY}/{name}:{ssh.value}",
            wishes=Wishes(
                python=interpreter_archive(self.folder),
                ssh=ssh,
                rdma=Rdma.NONE,
                builder=self.bases("debian11"),
            ),
            supplies=Supplies(self.folder / "payload", None),
        )
        with connected() as engine:
            built = build_image(request, ClassicBuilder(engine, Console(stderr=True, quiet=True)))
            # An image without a name goes with the last one that a test has made from it.
            engine.tag(built.image_id, request.tag)
            return built.image_id
