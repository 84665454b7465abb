"""Secrets are cut out of every line before it is printed.

Exceptions of HTTP libraries repeat whole URLs, and with a SAS the URL is the key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

from azcp_runtime.contract import ENV_ACCOUNT_KEY, ENV_CONNECTION_STRING, ENV_SAS

_HIDDEN: Final = "***"
_PATTERNS: Final = (
    re.compile(r"(?i)(\bsig(?:=|%3D))[^&\s\"'<>)\]]+"),
    re.compile(r"(?i)(\b(?:AccountKey|SharedAccessSignature)=)[^;\s\"']+"),
    re.compile(r"(?i)(\bSharedKey [^:\s]+:)[A-Za-z0-9+/=]+"),
    re.compile(r"(?i)(\bBearer )[A-Za-z0-9._~+/=-]+"),
)
_SHORTEST: Final = 8
"""A shorter value in the environment is no secret, and hiding it would garble the message."""

_known: set[str] = set()


def hide(secret: str) -> None:
    """From now on this value is cut out of all that the process prints, in whatever form it comes."""
    if len(secret) >= _SHORTEST:
        _known.update({secret, quote(secret, safe=""), unquote(secret)})


def without_secrets(text: str) -> str:
    """The text without the values that were hidden, and without what looks like a secret."""
    for value in tuple(_known):
        text = text.replace(value, _HIDDEN)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\1{_HIDDEN}", text)
    return text


def scrub(text: str, env: Mapping[str, str]) -> str:
    """The text without signatures, keys and tokens."""
    for name in (ENV_ACCOUNT_KEY, ENV_SAS, ENV_CONNECTION_STRING):
        value = env.get(name, "").strip()
        if len(value) >= _SHORTEST:
            text = text.replace(value, _HIDDEN).replace(quote(value, safe=""), _HIDDEN)
    text = without_secrets(text)
    # What servers and files say must not drive the terminal.
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
