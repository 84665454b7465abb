"""Jobs for a cluster of the lab: a job.toml, its generated script, and what its second phase has seen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from azcp_kit.quoting.toml import toml_string
from azcp_kit.spec.read import parse_job
from azcp_kit.targets.slurm.problems import sbatch_problems
from azcp_kit.targets.slurm.sbatch import sbatch_script
from azcp_kit.targets.slurm.wish import Wish, read_wish
from azcp_runtime.contract.image import PYTHON

from tests.lab.dataset import DataSet
from tests.lab.slurm import Cluster
from tests.lab.trees import assert_same

DEST: Final = "/mnt/nvme/data"
# What it has got, beside the script of the job, under its rank.
NOTE: Final = """
import json, os, sys
note = {"argv": sys.argv[2:], "env": dict(os.environ), "host": os.uname().nodename}
with open(os.path.join(sys.argv[1], os.environ["RANK"] + ".json"), "x") as file:
    json.dump(note, file)
"""


@dataclass(frozen=True)
class BatchJob:
    """One job.

    Args:
        cluster: where it runs.
        source: what is distributed.
        nodes: how many it wants.
        lines: further ones of the table [slurm].
        limits: further ones of the table [limits].
        options: of azcp-distribute.
        env: of the command.
        words: of the command.
        image: named in job.toml.
        own_image: of the command; empty for the same.
        form: of the command.
    """

    cluster: Cluster
    source: str
    nodes: int = 4
    lines: Sequence[str] = ()
    limits: Sequence[str] = ()
    options: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    words: Sequence[str] = ()
    image: str = "registry.example/app:1"
    form: str = "plain"
    own_image: str = ""

    def script(self, container: str = "none", launch: str = "auto") -> str:
        """As `azcp-kit generate sbatch` prints it."""
        wish: Wish = read_wish(container, launch)
        job = parse_job(self.text(), more=lambda job: sbatch_problems(job, wish))
        return sbatch_script(job, wish)

    @property
    def notes(self) -> Path:
        """Where the second phase writes."""
        return self.cluster.shared / "notes"

    def text(self) -> str:
        """The job.toml."""
        self.notes.mkdir(exist_ok=True)
        run = [PYTHON, "-Ic", NOTE, str(self.notes), *self.words]
        env = ", ".join(f"{name} = {toml_string(value)}" for name, value in self.env.items())
        return "\n".join(
            [
                'name = "llama"',
                f"image = {toml_string(self.image)}",
                f"source = {toml_string(self.source)}",
                f'dest = "{DEST}"',
                f"nodes = {self.nodes}",
                "[storage]",
                'path = "/mnt/nvme"',
                "[command]",
                f'form = "{self.form}"',
                f"run = [{', '.join(map(toml_string, run))}]",
                f"env = {{ {env} }}",
                *([f"image = {toml_string(self.own_image)}"] if self.own_image else []),
                "[distribute]",
                'memory = "64MiB"',
                f"options = [{', '.join(map(toml_string, self.options))}]",
                "[limits]",
                'wait = "60s"',
                *self.limits,
                "[slurm]",
                *self.lines,
                "",
            ]
        )

    def seen(self) -> list[dict[str, Any]]:
        """What each process of the second phase has noted, by rank."""
        files = sorted(self.notes.glob("*.json"), key=lambda path: int(path.stem))
        return [json.loads(path.read_text(encoding="utf-8")) for path in files]

    def expect_data(self, data_set: DataSet, *nodes: str) -> None:
        """All of it on each of the nodes, and nothing unfinished."""
        for node in nodes or self.cluster.nodes:
            assert_same(self.cluster.nvme(node) / "data", data_set.manifest)

    def expect_places(self, hosts: Sequence[str]) -> None:
        """One process of the second phase on each of the hosts, told where it stands."""
        seen = self.seen()
        assert [note["host"] for note in seen] == list(hosts)
        for rank, note in enumerate(seen):
            env = note["env"]
            assert [env[name] for name in ("RANK", "NODE_RANK", "PET_NODE_RANK")] == [str(rank)] * 3
            assert (env["NNODES"], env["MASTER_ADDR"], env["PET_MASTER_ADDR"]) == (
                str(len(hosts)),
                hosts[0],
                hosts[0],
            )
            assert env["MASTER_PORT"] == env["PET_MASTER_PORT"]
