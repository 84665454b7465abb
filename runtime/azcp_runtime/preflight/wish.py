"""What a run wants of its fabric: RDMA or nothing, whatever there is, or RDMA where there is some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from azcp_runtime.rails.devices import Devices

_RDMA_WORDS: Final = ("rc", "ud", "dc", "ib")
"""How the values of UCX_TLS begin that ask for verbs; all and auto take what there is."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of the fabric.

    Attributes:
        is_required: anything else than RDMA is a failure.
        is_allowed: TCP is as good.
        because: who asked for RDMA.
    """

    is_required: bool
    is_allowed: bool
    because: str = ""


def fabric_wish(
    devices: Devices,
    env: Mapping[str, str],
    *,
    required: bool,
    allowed: bool,
    named: Sequence[str] = (),
) -> Wish:
    """The wish of a command line and its environment; a setting that names RDMA asks for it.

    Args:
        devices: of this node.
        env: the environment.
        required: --require-rdma.
        allowed: --allow-tcp, which wins over what settings ask for.
        named: --rail-devices.
    """
    if required:
        return Wish(is_required=True, is_allowed=False, because="--require-rdma")
    if allowed:
        return Wish(is_required=False, is_allowed=True)
    reason = _reason(devices, env, named)
    return Wish(bool(reason), is_allowed=False, because=reason)


def _reason(devices: Devices, env: Mapping[str, str], named: Sequence[str]) -> str:
    here = {device.name for device in devices.devices}
    settings = (
        ("--rail-devices", named),
        ("UCX_NET_DEVICES", env.get("UCX_NET_DEVICES", "").split(",")),
    )
    for name, words in settings:
        if any(word.strip().partition(":")[0] in here for word in words):
            return f"{name} names an RDMA device"
    transports = env.get("UCX_TLS", "")
    words = [word.strip().partition("_")[0] for word in transports.split(",")]
    if not transports.startswith("^") and "tcp" not in words and any(word in _RDMA_WORDS for word in words):
        return "UCX_TLS names RDMA"
    return ""
