"""The step of the all-reduce test: its resources, what it runs in, its variables and its command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from azcp_kit.nccl.sizes import NcclSize, load_sizes
from azcp_kit.spec.job import JobSpec
from azcp_kit.spec.sku import Sku
from azcp_kit.spec.slurm import Mount
from azcp_kit.targets.slurm.image import image_file
from azcp_kit.targets.slurm.mounts import DEVICES, written
from azcp_kit.targets.slurm.wish import Container, Wish

_TOPOLOGIES: Final = "/opt/microsoft"
# The report tells the transports from these lines.
_LOGGING: Final = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
_GIB: Final = 1 << 30
# What a GPU shows of the memory that it is sold with: 39.4 GiB of 40, 79.1 of 80, 139.8 of 141.
_SHOWN: Final = 0.98


@dataclass(frozen=True, slots=True)
class NcclStep:
    """All of it follows from these.

    Args:
        job: with its table [nccl-test].
        wish: what the step runs in.
        sku: facts of the job's VM size.
        size: what that needs for the test.
    """

    job: JobSpec
    wish: Wish
    sku: Sku
    size: NcclSize

    @property
    def topology(self) -> str:
        """NCCL's topology file; empty for none."""
        default = f"{_TOPOLOGIES}/{self.sku.topology}" if self.sku.topology else ""
        return self.job.nccl_test.topology or default

    @property
    def binary(self) -> str:
        """all_reduce_perf."""
        return self.job.nccl_test.binary or self.size.binary

    @property
    def checks(self) -> bool:
        """Whether results are compared: only where a GPU has the memory for it."""
        return self.fits(3)

    @property
    def modules(self) -> tuple[str, ...]:
        """To load before the step."""
        if self.wish.container is not Container.NONE:
            return ()
        said = self.job.nccl_test.modules
        return self.size.modules if said is None else said

    @property
    def needed(self) -> tuple[str, ...]:
        """Paths that each node must have: without its topology file NCCL says nothing and is slow."""
        if self.wish.container is not Container.NONE:
            return (_image(self), *(mount.source for _, mount in self.mounts()))
        return tuple(path for path in (self.binary, self.topology) if path.startswith("/"))

    @property
    def options(self) -> list[str]:
        """Of srun, without those of a container."""
        masks = f"mask_cpu:{','.join(self.sku.task_masks)}" if self.sku.task_masks else "none"
        binding = ["--distribution=block", f"--cpu-bind={masks}", "--mpi=pmix", "--kill-on-bad-exit=1"]
        return [*self.resources(self.sku.gpus, self.sku.cpus // self.sku.gpus), *binding]

    @property
    def inside(self) -> list[str]:
        """What stands between srun and the test.

        Raises:
            UsageError: a mount cannot be written.
        """
        return INSIDE[self.wish.container](self)

    @property
    def env(self) -> Mapping[str, str]:
        """Variables of the test."""
        topology = {"NCCL_TOPO_FILE": self.topology} if self.topology else {}
        return {**_LOGGING, **self.size.env, **topology, **self.job.nccl_test.env}

    @property
    def program(self) -> list[str]:
        """The test with its options."""
        nccl = self.job.nccl_test
        sizes = ["-b", f"{nccl.min_bytes}", "-e", f"{nccl.max_bytes}", "-f", "2"]
        return [self.binary, *sizes, "-g", "1", "-n", f"{nccl.iterations}", "-c", f"{self.checks:d}"]

    def resources(self, tasks: int, cpus: int) -> list[str]:
        """Said again on each srun, which does not take all of them over from sbatch."""
        return [
            f"--nodes={self.job.nodes}",
            f"--ntasks={self.job.nodes * tasks}",
            f"--ntasks-per-node={tasks}",
            f"--cpus-per-task={cpus}",
            f"--gpus-per-node={self.sku.gpus}",
            "--mem=0",
            "--export=ALL",
        ]

    def mounts(self) -> Iterator[tuple[str, Mount]]:
        """Of a container, each with the key of job.toml that it comes from."""
        yield "sku", DEVICES
        if self.topology:
            yield "nccl-test.topology", Mount(self.topology, self.topology, ("ro",))
        yield from ((f"slurm.mounts[{at}]", mount) for at, mount in enumerate(self.job.slurm.mounts))

    def fits(self, buffers: int) -> bool:
        """Whether a GPU holds so many of the largest message; nccl-tests would take a smaller one.

        It sets 1 GiB aside, and 1 for each 16 but at most 4 more (common.cu).
        """
        memory = self.size.gpu_memory_gib * _SHOWN
        reserved = 1 + min(-(-memory // 16), 4)
        return self.job.nccl_test.max_bytes * buffers <= (memory - reserved) * _GIB


def nccl_step(job: JobSpec, wish: Wish, sku: Sku) -> NcclStep:
    """The step of a job on a VM size."""
    return NcclStep(job, wish, sku, load_sizes()[sku.name])


def _pyxis(step: NcclStep) -> list[str]:
    mounts = ",".join(written(step.wish.container, mount) for _, mount in step.mounts())
    return [
        f"--container-image={_image(step)}",
        f"--container-mounts={mounts}",
        # MPI has its session folder in /tmp.
        "--container-writable",
        "--no-container-entrypoint",
    ]


def _apptainer(step: NcclStep) -> list[str]:
    gpus = "--rocm" if step.size.library == "RCCL" else "--nv"
    binds = [f"--bind={written(step.wish.container, mount)}" for _, mount in step.mounts()]
    return ["apptainer", "exec", gpus, *binds, _image(step)]


def _bare(_step: NcclStep) -> list[str]:
    return []


def _image(step: NcclStep) -> str:
    """The file of the image: one of a registry would be fetched by each node, in each step."""
    return step.job.nccl_test.image or image_file(step.job, step.wish)


INSIDE: Final[Mapping[Container, Callable[[NcclStep], list[str]]]] = MappingProxyType(
    {Container.PYXIS: _pyxis, Container.APPTAINER: _apptainer, Container.NONE: _bare}
)
"""What the test can run in."""
