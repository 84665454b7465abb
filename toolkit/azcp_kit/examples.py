"""Write the generated files under examples/ again: ``python -m azcp_kit.examples examples``.

They are checked in and serve as golden files: a test makes them anew and compares.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from azcp_kit.plan import PlanRequest, plan_cluster
from azcp_kit.plan_table import plan_tables
from azcp_kit.targets.command import generate as manifest
from azcp_kit.targets.command import read_checked
from azcp_kit.targets.slurm.wish import read_wish
from azcp_kit.units import parse_rate

_NODES: Final = (4, 16, 64)
_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class Example:
    """One generated manifest or script.

    Args:
        job: name of the job.toml.
        kind: of `azcp-kit generate`.
        file: name of the result.
        settings: what is given by --set.
        container: what is given by --container.
        launch: what is given by --launch.
    """

    job: str
    kind: str
    file: str
    settings: tuple[str, ...] = ()
    container: str = ""
    launch: str = ""


AKS: Final = (
    Example("job.toml", "mpijob", "mpijob.yaml"),
    Example("job.toml", "identity", "identity.sh"),
    Example("job-mpi.toml", "mpijob", "mpijob-mpi.yaml"),
    Example("job-mpi.toml", "identity", "identity-kubelet.sh"),
    Example("job-two-images.toml", "job", "job.yaml"),
    Example("job-two-images.toml", "jobset", "jobset.yaml", ("queue=team-a",)),
    Example("job-two-images.toml", "volcano", "volcano.yaml", ("queue=gpu",)),
    Example("job-two-images.toml", "argo", "argo.yaml"),
    Example("job-two-images.toml", "ssh-secret", "ssh-secret.sh"),
    Example("job-restricted.toml", "mpijob", "mpijob-restricted.yaml"),
    Example("job-restricted.toml", "job", "job-restricted.yaml"),
    Example("job-serve.toml", "statefulset", "statefulset.yaml"),
    Example("job-serve.toml", "serving", "serving.yaml"),
    Example("job-warmup.toml", "warmup", "warmup.yaml"),
    Example(
        "job-warmup.toml",
        "warmup",
        "warmup-daemonset.yaml",
        ("warmup=daemonset", "limits.retries=0", "limits.ttl="),
    ),
)
SLURM: Final = (
    Example("job.toml", "sbatch", "pyxis.sbatch", container="pyxis"),
    Example("job.toml", "sbatch", "enroot.sbatch", container="enroot"),
    Example("job.toml", "sbatch", "apptainer.sbatch", container="apptainer"),
    Example("job.toml", "import", "import.sh", container="pyxis"),
    Example("job.toml", "import", "import-sif.sh", container="apptainer"),
    Example("job-none.toml", "sbatch", "none.sbatch", container="none"),
    Example("job-none.toml", "sbatch", "pmix.sbatch", container="none", launch="pmix"),
    Example("job-mpi.toml", "sbatch", "mpi.sbatch", container="pyxis"),
    Example("job-two-images.toml", "sbatch", "two-images.sbatch", container="pyxis"),
    Example("job-two-images.toml", "import", "import-two-images.sh", container="pyxis"),
    Example("job-nccl.toml", "nccl-test", "nccl-test.sbatch", container="pyxis"),
)


def generate(folder: Path) -> dict[Path, str]:
    """Every generated file below a folder of examples, by path: what it must hold."""
    aks = folder / "aks"
    listing = aks / "checkpoint.tsv"
    plans = {aks / f"plan-{nodes}-nodes.txt": plan_text(listing, nodes) for nodes in _NODES}
    made = {"aks": AKS, "slurm": SLURM}
    return plans | {
        folder / name / each.file: _manifest(folder / name, each)
        for name, examples in made.items()
        for each in examples
    }


def _manifest(folder: Path, example: Example) -> str:
    wish = read_wish(example.container, example.launch) if example.container else None
    job = read_checked(example.kind, folder / example.job, example.settings, wish)
    return manifest(example.kind, job, wish)


def plan_text(listing: Path, nodes: int) -> str:
    """What ``azcp-kit plan`` prints for a listing on so many nodes."""
    egress, fabric, disk = (parse_rate(rate) for rate in ("200Gbps", "135Gbps", "100Gbps"))
    plan = plan_cluster(PlanRequest(listing, nodes, 1, "4GiB", egress, fabric, disk))
    console = Console(file=io.StringIO(), width=_WIDTH, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(plan_tables(plan))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def main() -> None:
    """Write them."""
    for path, text in generate(Path(sys.argv[1])).items():
        path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
