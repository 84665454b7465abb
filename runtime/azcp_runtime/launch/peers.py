"""The other nodes of a job, as the one that starts things sees them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from azcp_runtime.contract import AzcpError, ExitCode
from azcp_runtime.ssh.keys import JobKeys, parse_private


@dataclass(frozen=True, slots=True)
class Loss:
    """A node that the job cannot go on without.

    Args:
        host: how the user calls it.
        reason: what was seen of it.
        code: what the job ends with.
    """

    host: str
    reason: str
    code: int = ExitCode.BROADCAST


class Peers(Protocol):
    """Who takes part beside this node."""

    @property
    def lost(self) -> Future[Loss]:
        """The first of them that is lost after the job has begun."""

    async def meet(self, address: str) -> None:
        """Have one of them prove that it belongs to the job, and is ready."""

    def is_met(self, address: str) -> bool:
        """Whether the one there was met and has not gone again, as far as that is watched."""

    def begin(self, addresses: Mapping[str, str]) -> None:
        """From now on none of them may go; those that were met and are not among these are let go."""

    def confirm(self) -> None:
        """The data is in place: have each of them do what is left to do then."""

    def settle(self) -> Loss | None:
        """The loss that explains a failure, which may be noticed a moment after it."""

    def end(self, code: int, text: str) -> None:
        """Tell all of them how it ended."""


class LostError(AzcpError):
    """A node was lost, or could not do its part."""

    def __init__(self, loss: Loss) -> None:
        super().__init__(f"{loss.host}: {loss.reason}")
        self.loss = loss


class Workers:
    """Nodes with an azcp-sshd, which have no part in how the job ends.

    Args:
        port: of their ssh servers.
        keys: the job's.

    Raises:
        PreflightError: the key cannot be used, which is no node's fault.
    """

    def __init__(self, port: int, keys: JobKeys) -> None:
        parse_private(keys)
        self.lost: Future[Loss] = Future()
        self._port = port
        self._keys = keys

    async def meet(self, address: str) -> None:
        """Log in, and leave again."""
        from azcp_runtime.ssh.client import CONNECT_TIMEOUT_S, Peer, connect, own_user

        connection = await connect(Peer(address, self._port, own_user()), self._keys, CONNECT_TIMEOUT_S)
        connection.abort()

    def is_met(self, address: str) -> bool:  # noqa: ARG002 - it was, or nobody would ask
        """Nobody is watched."""
        return True

    def begin(self, addresses: Mapping[str, str]) -> None:
        """Who goes is found out by mpirun and by the sessions of phase 2."""

    def confirm(self) -> None:
        """Nothing is left to do."""

    def settle(self) -> Loss | None:
        """None is watched."""
        return None

    def end(self, code: int, text: str) -> None:
        """They serve on."""


class Nobody:
    """The peers of a node that is alone."""

    def __init__(self) -> None:
        self.lost: Future[Loss] = Future()

    async def meet(self, address: str) -> None:
        """Nobody is met."""
        raise AssertionError(address)

    def is_met(self, address: str) -> bool:
        """Nobody is asked for."""
        raise AssertionError(address)

    def begin(self, addresses: Mapping[str, str]) -> None:
        """Nobody can go."""

    def confirm(self) -> None:
        """Nobody has anything to do."""

    def settle(self) -> Loss | None:
        """Nobody is lost."""
        return None

    def end(self, code: int, text: str) -> None:
        """Nobody listens."""
