"""What the user says of rails: how many, and what is not to be found but taken as it is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from azcp_runtime.contract import UsageError
from azcp_runtime.contract.options import AUTO, MOST_RAILS, Rails
from azcp_runtime.rails.topology import parse_cpus

NONE: Final = "none"
ENV_DEVICES: Final = "AZCP_RAIL_DEVICES"
ENV_CPUS: Final = "AZCP_RAIL_CPUS"
ENV_GID_INDEX: Final = "AZCP_RAIL_GID_INDEX"
_LARGEST_GID_INDEX: Final = 255

GidIndex = int | Literal["none"]


@dataclass(frozen=True, slots=True)
class RailWish:
    """What is said instead of found; each is None where it is to be found.

    Attributes:
        devices: HCA ports or network interfaces, one per rail.
        cpus: the CPUs of each rail; empty where no rank is to be pinned.
        gid_index: of RoCE; none leaves it to UCX.
    """

    devices: tuple[str, ...] | None = None
    cpus: tuple[tuple[int, ...], ...] | None = None
    gid_index: GidIndex | None = None

    def problems(self, rails: int) -> list[str]:
        """What does not fit so many rails."""
        lists = (("devices", self.devices), ("lists of CPUs", self.cpus))
        return [
            f"{rails} rails, but {len(said)} {name} for them"
            for name, said in lists
            if said and len(said) != rails
        ]


def parse_rails(text: str) -> Rails:
    """How many rails.

    Raises:
        ValueError: it is neither auto nor a number of rails.
    """
    if text == AUTO:
        return AUTO
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= MOST_RAILS:
        raise ValueError(f"{text!r} is neither auto nor a whole number from 1 to {MOST_RAILS}")
    return int(text)


def parse_devices(text: str) -> tuple[str, ...]:
    """Names of devices, such as mlx5_ib0,mlx5_ib1:1 or eth1,eth2.

    Raises:
        ValueError: a name is empty, or cannot be one.
    """
    names = tuple(word.strip() for word in text.split(","))
    if not all(name and name.isprintable() and not set(name) & set("/ ") for name in names):
        raise ValueError(f"{text!r} is no list of devices such as mlx5_ib0,mlx5_ib1")
    return names


def parse_rail_cpus(text: str) -> tuple[tuple[int, ...], ...]:
    """One list of CPUs per rail, such as 0-23/24-47; empty for none.

    Raises:
        ValueError: it is neither.
    """
    return () if text == NONE else tuple(tuple(sorted(parse_cpus(part))) for part in text.split("/"))


def parse_gid_index(text: str) -> GidIndex:
    """An entry of the GID table.

    Raises:
        ValueError: it is neither none nor a number.
    """
    if text == NONE:
        return NONE
    if not (text.isascii() and text.isdecimal()) or int(text) > _LARGEST_GID_INDEX:
        raise ValueError(f"{text!r} is neither none nor an entry of a GID table")
    return int(text)


def wish_of(said: RailWish, env: Mapping[str, str]) -> RailWish:
    """What the command line says, else what the environment says.

    Raises:
        UsageError: a variable is wrong.
    """
    try:
        devices, cpus, gid = (env.get(name, "") for name in (ENV_DEVICES, ENV_CPUS, ENV_GID_INDEX))
        return RailWish(
            said.devices or (parse_devices(devices) if devices else None),
            said.cpus if said.cpus is not None else parse_rail_cpus(cpus) if cpus else None,
            said.gid_index if said.gid_index is not None else parse_gid_index(gid) if gid else None,
        )
    except ValueError as error:
        raise UsageError(
            f"{ENV_DEVICES}, {ENV_CPUS} or {ENV_GID_INDEX}: {error}", remedy="see azcp-distribute --help"
        ) from None
