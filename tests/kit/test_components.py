"""What was added to an image can be read by machines: its manifest, and a CycloneDX bill of materials."""

from __future__ import annotations

import json
import re
from typing import Any

from azcp_kit.payload.components import Component, bill_of_materials, manifest_text

DIGEST = "ab" * 32
COMPONENTS = [
    Component("python", "3.13.15", "interpreter", DIGEST, "cpython-3.13.15+20260814.tar.gz", "amd64"),
    Component("python", "3.13.15", "interpreter", DIGEST, "cpython-3.13.15+20260814.tar.gz", "arm64"),
    Component("certifi", "2026.10.19.post1", "wheel", DIGEST, "certifi-2026.10.19.post1-py3-none-any.whl"),
    Component("ucx", "1.20.0+local rc1", "source", DIGEST, "ucx.tar"),
    Component("openmpi", "", "image", origin="team/mpi:1"),
    Component("openssh-server", "", "package"),
    Component("azcp-runtime", "0.1.0", "runtime"),
]
CHOICES = {"ssh": "bundled", "rdma": "base"}


def bill(components: list[Component]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(bill_of_materials(components, "0.1.0"))
    return content


def test_the_manifest_tells_who_made_it_what_was_chosen_and_every_component() -> None:
    content = json.loads(manifest_text(COMPONENTS, "0.1.0", CHOICES))
    assert (content["schema"], content["version"], content["choices"]) == (1, "0.1.0", CHOICES)
    assert {Component(**each) for each in content["components"]} == set(COMPONENTS)


def test_the_order_in_which_parts_were_placed_does_not_show() -> None:
    backwards = COMPONENTS[::-1]
    assert manifest_text(backwards, "0.1.0", CHOICES) == manifest_text(COMPONENTS, "0.1.0", CHOICES)
    assert bill_of_materials(backwards, "0.1.0") == bill_of_materials(COMPONENTS, "0.1.0")


def test_the_bill_has_what_cyclonedx_requires_of_it() -> None:
    content = bill(COMPONENTS)
    assert (content["bomFormat"], content["specVersion"], content["version"]) == ("CycloneDX", "1.5", 1)
    parts = [content["metadata"]["component"], *content["components"]]
    for part in parts:
        assert {"type", "name"} <= set(part)
        # bom-1.5.schema.json allows no other property than those it knows.
        assert set(part) <= {"type", "name", "version", "purl", "bom-ref", "hashes"}
        assert part["type"] in {"application", "library"}
        for digest in part.get("hashes", []):
            assert digest["alg"] == "SHA-256"
            assert re.fullmatch("[0-9a-f]{64}", digest["content"])
    assert len(content["components"]) == len(COMPONENTS)


def test_no_two_parts_have_the_same_reference() -> None:
    references = [part["bom-ref"] for part in bill(COMPONENTS)["components"] if "bom-ref" in part]
    assert len(references) == len(set(references)) == 5


def test_a_wheel_is_known_by_its_name_on_the_package_index() -> None:
    urls = {part["name"]: part.get("purl") for part in bill(COMPONENTS)["components"]}
    assert urls["certifi"] == "pkg:pypi/certifi@2026.10.19.post1"
    assert urls["python"] == "pkg:generic/python@3.13.15"
    assert urls["ucx"] == "pkg:generic/ucx@1.20.0%2Blocal%20rc1"
    assert urls["openssh-server"] is None


def test_neither_time_nor_chance_shows_in_them() -> None:
    text = bill_of_materials(COMPONENTS, "0.1.0")
    assert "serialNumber" not in text
    assert "timestamp" not in text
