"""A container's probes as values; whoever runs the container asks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from azcp_kit.rehearse.fields import Fields

_PERIOD_S: Final = 10
_HTTP: Final = 80


@dataclass(frozen=True, slots=True)
class Probe:
    """What tells that a container is ready.

    Args:
        argv: a command in the container, for an exec probe.
        port: where to connect, for the others.
        path: what to ask for over HTTP; None for a connection alone.
        is_https: whether it speaks TLS.
        delay_s: after the container's start.
        period_s: between two tries.
        limit_s: of one try.
        successes: that it takes in a row.
        failures: that are borne in a row.
        unknown: what kind it is, where it cannot be asked here.
    """

    argv: tuple[str, ...] = ()
    port: int = 0
    path: str | None = None
    is_https: bool = False
    delay_s: int = 0
    period_s: int = _PERIOD_S
    limit_s: int = 1
    successes: int = 1
    failures: int = 3
    unknown: str = ""

    @property
    def text(self) -> str:
        """What it does, in a few words."""
        if self.argv:
            return f"exec {self.argv[0]}"
        if self.path is not None:
            return f"httpGet :{self.port}{self.path}"
        return self.unknown or f"tcpSocket :{self.port}"


def read_probe(container: Fields, name: str, ports: Mapping[str, int]) -> Probe | None:
    """One of a container's probes; None where it has none of that name.

    Args:
        container: that has it.
        name: such as readinessProbe.
        ports: the container's own, by name.
    """
    fields = container.at(name)
    if not fields.raw:
        return None
    kind = next((kind for kind in ("exec", "tcpSocket", "httpGet") if fields.has(kind)), "")
    below = fields.at(kind) if kind else fields
    return Probe(
        argv=below.words("command") if kind == "exec" else (),
        port=_port(below, ports) if kind in ("tcpSocket", "httpGet") else 0,
        path=below.text("path", "/") if kind == "httpGet" else None,
        is_https=kind == "httpGet" and below.text("scheme", "HTTP").upper() == "HTTPS",
        delay_s=fields.number("initialDelaySeconds", 0),
        period_s=fields.number("periodSeconds", _PERIOD_S) or _PERIOD_S,
        limit_s=fields.number("timeoutSeconds", 1) or 1,
        successes=fields.number("successThreshold", 1) or 1,
        failures=fields.number("failureThreshold", 3) or 3,
        unknown="" if kind else ", ".join(sorted(fields.raw)),
    )


def _port(fields: Fields, ports: Mapping[str, int]) -> int:
    value = fields.raw.get("port")
    if isinstance(value, str) and not value.isdecimal():
        if value not in ports:
            raise fields.error("port", f"is '{value}', which is no port of the container")
        return ports[value]
    return int(value) if isinstance(value, str) else fields.number("port", _HTTP)
