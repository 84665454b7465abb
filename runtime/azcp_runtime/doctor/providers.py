"""Whether libibverbs has a provider for each device, and all of it comes from one release."""

from __future__ import annotations

import os
from typing import Final

from azcp_runtime.doctor.check import Check, few, ok, warn, without_rdma
from azcp_runtime.doctor.libraries import VerbsAnswer
from azcp_runtime.rails.devices import Devices

_NAME: Final = "verbs providers"
_INSTALL: Final = (
    "build the image with --rdma bundled, or with --rdma package "
    "(ibverbs-providers on Debian, libibverbs on RHEL)"
)


def check_providers(facts: VerbsAnswer, devices: Devices, *, is_required: bool) -> Check:
    """Whether UCX could use the devices through these libraries."""
    usable = sorted({port.name.rpartition(":")[0] for port in devices.usable()})
    if not usable and not is_required:
        return ok(_NAME, f"{_origin(facts)}; not needed without a device")
    if facts.error:
        return without_rdma(_NAME, f"libibverbs: {facts.error}", _INSTALL, is_required=is_required)
    missing = [name for name in usable if name not in facts.devices]
    if missing:
        said = f" ({facts.warnings})" if facts.warnings else ""
        found = f"{_origin(facts)} has no provider for {few(missing)}{said}"
        return without_rdma(_NAME, found, _INSTALL, is_required=is_required)
    if facts.errors and any(device.driver == "mlx5_core" for device in devices.devices):
        found = f"a module of UCX does not load: {few(list(facts.errors), 2)}"
        return without_rdma(_NAME, found, _INSTALL, is_required=is_required)
    if len(folders := _folders(facts)) > 1:
        return warn(
            _NAME,
            f"libibverbs and its providers come from {few(folders)}",
            "take both from one release: LD_LIBRARY_PATH mixes them, or build with --rdma base or bundled",
        )
    return ok(_NAME, f"{_origin(facts)} has one for {few(usable)}" if usable else _origin(facts))


def _origin(facts: VerbsAnswer) -> str:
    paths = [path for path in facts.libraries if os.path.basename(path).startswith("libibverbs.")]
    return paths[0] if paths else "no libibverbs"


def _folders(facts: VerbsAnswer) -> list[str]:
    """Folders of the libraries; a provider lies in a folder of its own below the library's."""
    folders = {os.path.dirname(os.path.realpath(path)) for path in facts.libraries}
    return sorted(folder.removesuffix("/libibverbs") for folder in folders if not _is_below(folder, folders))


def _is_below(folder: str, folders: set[str]) -> bool:
    return folder.endswith("/libibverbs") and folder.removesuffix("/libibverbs") in folders
