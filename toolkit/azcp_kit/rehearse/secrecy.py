"""What pods say, without any secret and fit for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from azcp_kit.rehearse.account import SIGNATURE, Emulator
from azcp_kit.rehearse.plan import Plan
from azcp_kit.shown import shown

_SHORTEST_SECRET: Final = 8
_LONGEST: Final = 400
Censor = Callable[[str], str]


def make_censor(plan: Plan, emulator: Emulator) -> Censor:
    """What takes the plan's secrets out of a text, before it cuts it: half of one is one too."""
    secrets = _secret_texts(plan, emulator)

    def censor(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, "***")
        return shown(SIGNATURE.sub("sig=***", text), _LONGEST)

    return censor


def _secret_texts(plan: Plan, emulator: Emulator) -> tuple[str, ...]:
    found = {emulator.key}
    for content in plan.store.secrets.values():
        for value in content.values():
            with suppress(UnicodeDecodeError):
                text = value.decode().strip()
                found |= {text, *text.splitlines()}
    return tuple(sorted((text for text in found if len(text) >= _SHORTEST_SECRET), key=len, reverse=True))
