"""What was added to an image, as data: /opt/azcp/manifest.json and a CycloneDX bill of materials."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import quote

MANIFEST_SCHEMA: Final = 1
"""Version of manifest.json."""


@dataclass(frozen=True, slots=True, order=True)
class Component:
    """One part of the tree.

    Args:
        name: as its publisher calls it.
        version: as its publisher counts; empty where the part does not tell.
        kind: interpreter, wheel, source, image, package or runtime.
        sha256: of the archive it came from; empty where there was none.
        origin: the archive's file name or the image; never an address of a mirror.
        arch: empty for what is the same everywhere.
    """

    name: str
    version: str
    kind: str
    sha256: str = ""
    origin: str = ""
    arch: str = ""


def manifest_text(components: Sequence[Component], version: str, choices: dict[str, str]) -> str:
    """manifest.json: which azcp-kit made the tree, what was chosen, and every component."""
    content = {
        "schema": MANIFEST_SCHEMA,
        "version": version,
        "choices": choices,
        "components": [asdict(component) for component in sorted(components)],
    }
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


def bill_of_materials(components: Sequence[Component], version: str) -> str:
    """CycloneDX 1.5 as JSON (https://cyclonedx.org/docs/1.5/json/), without serial number or time: stable."""
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "azcp-kit", "version": version}},
        "components": [_cyclonedx(component) for component in sorted(components)],
    }
    return json.dumps(content, indent=2) + "\n"


def _cyclonedx(component: Component) -> dict[str, object]:
    entry: dict[str, object] = {"type": "library", "name": component.name}
    if component.version:
        entry["version"] = component.version
        prefix = "pypi" if component.kind == "wheel" else "generic"
        entry["purl"] = f"pkg:{prefix}/{component.name}@{quote(component.version, safe='')}"
        entry["bom-ref"] = f"{entry['purl']}{f'?arch={component.arch}' if component.arch else ''}"
    if component.sha256:
        entry["hashes"] = [{"alg": "SHA-256", "content": component.sha256}]
    return entry
