"""What looks like a secret: it is neither shown nor taken where it would lie open in a manifest."""

from __future__ import annotations

import re
from typing import Final

from azcp_runtime.contract import ENV_ACCOUNT_KEY, ENV_SAS

SECRET_VARIABLES: Final = frozenset(
    {
        ENV_SAS,
        ENV_ACCOUNT_KEY,
        "AZURE_STORAGE_CONNECTION_STRING",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_CLIENT_SECRET",
    }
)
"""Variables whose value is one, whatever it looks like."""

# A SAS, a connection string, or an account's key: 64 bytes in base64.
_SECRET: Final = re.compile(
    r"(?:^|[?&\s;])sig=[^&\s]|AccountKey=[^;\s]|SharedAccessSignature=[^;\s]|(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}==",
    re.IGNORECASE,
)


def may_be_secret(text: str) -> bool:
    """Whether somebody who reads the text may come in with it."""
    return _SECRET.search(text) is not None
