"""What the cluster has on this machine's disk, and what each of its machines sees of it."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from tests.lab.slurm import conf
from tests.lab.slurm.machine import Disk

NVME: Final = "/mnt/nvme"
_OWN: Final = ("/mnt", "/run", "/tmp")  # noqa: S108 - every machine has these to itself
_REPOSITORY: Final = Path(__file__).parents[3]
_NULL: Final = os.makedev(1, 3)


def pmix_folder() -> Path:
    """Where Debian keeps what Slurm opens for --mpi=pmix; it does not exist without the package libpmix2."""
    return next(Path("/usr/lib").glob("*/pmix2/lib"), Path("/usr/lib/pmix2/lib"))


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything is below `folder`."""

    folder: Path

    @property
    def shared(self) -> Path:
        """The file system that all machines have, at the same path."""
        return self.folder / "shared"

    def own(self, name: str, path: str) -> Path:
        """What lies at `path`, which is below /mnt, /run or /tmp, on that machine."""
        return self.folder / "machines" / name / path.lstrip("/")

    def log(self, name: str) -> Path:
        """What the services of that machine say."""
        return self.folder / "log" / name

    def write(
        self,
        addresses: Mapping[str, IPv4Address],
        cpus: int,
        gpus: int,
        parameters: Mapping[str, str],
        has_pmix: bool,
    ) -> None:
        """Make the folder, with the configuration of a cluster of these nodes."""
        self.folder.mkdir(parents=True)
        for name in ("shared", "log", "etc", "gpus"):
            (self.folder / name).mkdir()
        nodes = [name for name in addresses if name != conf.CONTROLLER]
        (self.folder / "hosts").write_text(conf.hosts(addresses), encoding="utf-8")
        slurm_conf = conf.slurm_conf(nodes, cpus, gpus, parameters)
        (self.folder / "etc" / "slurm.conf").write_text(slurm_conf, encoding="utf-8")
        (self.folder / "etc" / "gres.conf").write_text(conf.gres_conf(self._gpus(gpus)), encoding="utf-8")
        self._copy_pmix(has_pmix)
        key = self.folder / "etc" / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))

    def disk(self, name: str) -> Disk:
        """That of a machine which starts: what is below /run has not outlived its last time."""
        if self.own(name, "/run").exists():
            shutil.rmtree(self.own(name, "/run"))
        for path in ("/run/munge", conf.STATE, conf.SPOOL, NVME):
            self.own(name, path).mkdir(parents=True, exist_ok=True)
        shared = {
            "/etc/slurm": self.folder / "etc",
            "/etc/hosts": self.folder / "hosts",
            str(pmix_folder()): self.folder / "pmix",
            **{str(path): path for path in self._kept()},
        }
        return Disk({path: self.own(name, path) for path in _OWN}, shared, self.folder)

    def _kept(self) -> Iterator[Path]:
        """What lies where every machine has folders of its own, and is needed on them."""
        for path in {self.folder, _REPOSITORY, Path(sys.prefix), Path(sys.base_prefix)}:
            if any(path.is_relative_to(root) for root in _OWN):
                yield path

    def _copy_pmix(self, has_pmix: bool) -> None:
        """Give the machines the library of PMIx under the name by which Slurm opens it, or hide it."""
        copy = self.folder / "pmix"
        shutil.copytree(pmix_folder(), copy, symlinks=True)
        # Debian has this name in libpmix-dev alone, and without it Slurm lists pmix but cannot use it.
        link = copy / "libpmix.so"
        link.unlink(missing_ok=True)
        if has_pmix:
            link.symlink_to("libpmix.so.2")

    def _gpus(self, count: int) -> Sequence[Path]:
        """Character devices, which is all that Slurm asks of a GPU."""
        devices = [self.folder / "gpus" / f"nvidia{index}" for index in range(count)]
        for device in devices:
            os.mknod(device, stat.S_IFCHR | 0o666, _NULL)
        return devices
