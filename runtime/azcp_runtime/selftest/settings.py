"""How the image says that it was made."""

from __future__ import annotations

import tomllib
from pathlib import Path

from azcp_runtime.contract import UsageError
from azcp_runtime.contract.image import IMAGE_SETTINGS


def rdma_kind(settings: Path = Path(IMAGE_SETTINGS)) -> str:
    """Where the verbs library comes from: base, package, bundled or none.

    Raises:
        UsageError: the settings are absent or damaged.
    """
    try:
        return str(tomllib.loads(settings.read_text(encoding="utf-8")).get("rdma", "base"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{settings} is damaged: {error}", remedy="build the image again") from error
