"""Tries an ssh server without the job's key: with another one, with a password, and with nothing at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from azcp_runtime.ssh.client import own_user
from azcp_runtime.ssh.library import asyncssh

_LOGIN_S: Final = 20.0
_PASSWORDS: Final = ("", "azcp", "root")


class Intruder(asyncssh.SSHClient):
    """Somebody without a key, who takes every other way that the server offers."""

    def __init__(self) -> None:
        self.offered: set[str] = set()
        self._passwords = iter(_PASSWORDS)

    def password_auth_requested(self) -> str | None:
        """Try the next one."""
        self.offered.add("a password")
        return next(self._passwords, None)

    def kbdint_auth_requested(self) -> str | None:
        """Try that too."""
        self.offered.add("keyboard-interactive")
        return ""

    def kbdint_challenge_received(
        self,
        name: str,  # noqa: ARG002 - asyncssh passes them by position
        instructions: str,  # noqa: ARG002
        lang: str,  # noqa: ARG002
        prompts: Sequence[tuple[str, bool]],
    ) -> list[str]:
        """Answer whatever it asks."""
        return [_PASSWORDS[0] for _ in prompts]


async def intruder_problems(address: str, port: int) -> list[str]:
    """Who is let in without the job's key, and by what."""
    other, intruder = asyncssh.generate_private_key("ssh-ed25519"), Intruder()
    problems = []
    if await _comes_in(address, port, asyncssh.SSHClient(), other):
        problems.append("another key is let in")
    if await _comes_in(address, port, intruder, None):
        problems.append(f"it lets in by {' or '.join(sorted(intruder.offered)) or 'nothing at all'}")
    elif intruder.offered:
        problems.append(f"it offers {' and '.join(sorted(intruder.offered))}")
    return problems


async def _comes_in(address: str, port: int, client: asyncssh.SSHClient, key: asyncssh.SSHKey | None) -> bool:
    # asyncssh asks for the local user's name too, which a uid without a passwd entry does not have.
    os.environ.setdefault("USER", own_user())
    try:
        connection = await asyncssh.connect(
            address,
            port,
            client_factory=lambda: client,
            username=own_user(),
            client_keys=[key] if key else None,
            # It is no matter here whose server it is.
            known_hosts=None,
            config=None,
            agent_path=None,
            login_timeout=_LOGIN_S,
            connect_timeout=_LOGIN_S,
        )
    except (asyncssh.DisconnectError, ConnectionError):
        return False
    connection.abort()
    return True
