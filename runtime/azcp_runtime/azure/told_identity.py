"""Which identity a token stands for, in words: what the token says of itself, never the token."""

from __future__ import annotations

import base64
import json
import re
from typing import Final

_CLAIMS: Final = (("client", ("appid", "azp")), ("tenant", ("tid",)), ("object", ("oid",)))
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


def told_identity(token: str) -> str:
    """Client id, tenant and object id of a token, as far as it is one that says so."""
    claims = _claims(token)
    words = []
    for label, names in _CLAIMS:
        value = next((claims[name] for name in names if claims.get(name)), "")
        # The token came over the network: only what looks like an id reaches a message.
        if isinstance(value, str) and _NAME.fullmatch(value):
            words.append(f"{label} {value}")
    return ", ".join(words)


def _claims(token: str) -> dict[str, object]:
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 - head, claims and signature: what a JWT consists of
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
