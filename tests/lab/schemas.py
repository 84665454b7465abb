"""Validates manifests as an API server would, and stricter: an unknown field is an error."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
from jsonschema import Draft7Validator
from kubernetes_validate.utils import all_versions
from packaging.version import Version

OLDEST: Final = Version("1.29")
VERSIONS: Final = tuple(sorted({v for v in all_versions() if Version(v) >= OLDEST}, key=Version))
"""Of Kubernetes, all that the schemas know from the oldest that is supported."""

CRD_VARIABLE: Final = "AZCP_CRD_DIR"
_PRESERVED: Final = "x-kubernetes-preserve-unknown-fields"
_CUSTOM: Final = ("kubeflow.org/", "jobset.x-k8s.io/", "batch.volcano.sh/", "argoproj.io/")


def assert_valid(documents: list[dict[str, Any]]) -> None:
    """Each document, and the pods inside those of custom kinds, in every version of Kubernetes."""
    for document in documents:
        if document["apiVersion"].startswith(_CUSTOM):
            _assert_valid_custom(document)
            for template in pod_templates(document):
                pod = {"apiVersion": "v1", "kind": "Pod", **template}
                _assert_valid_core({**pod, "metadata": {"name": "pod", **template.get("metadata", {})}})
        else:
            _assert_valid_core(document)


def pod_templates(value: object) -> Iterator[dict[str, Any]]:
    """Every pod template below a value: what has a spec with containers."""
    if isinstance(value, dict):
        spec = value.get("spec")
        if isinstance(spec, dict) and "containers" in spec:
            yield value
        for item in value.values():
            yield from pod_templates(item)
    elif isinstance(value, list):
        for item in value:
            yield from pod_templates(item)


def _assert_valid_core(document: dict[str, Any]) -> None:
    for version in VERSIONS:
        kubernetes_validate.validate(document, version, strict=True)


def _assert_valid_custom(document: dict[str, Any]) -> None:
    group, _, version = document["apiVersion"].partition("/")
    validator = _custom_validator(f"{document['kind'].lower()}-{group}-{version}.json")
    errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
    assert not errors, errors


@cache
def _custom_validator(name: str) -> Draft7Validator:
    folder = _crd_folder()
    schema = json.loads((folder / name).read_text(encoding="utf-8"))
    schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {}}
    return Draft7Validator(_closed(schema))


def _crd_folder() -> Path:
    folder = Path(os.environ.get(CRD_VARIABLE) or Path(__file__).parents[3] / "shared" / "crds")
    if not folder.is_dir():
        pytest.skip(f"no schemas of custom kinds in {folder}: set {CRD_VARIABLE}")
    return folder


def _closed(schema: Any) -> Any:  # noqa: ANN401 - a JSON schema
    """The same schema, in which an object has no other fields than those it names."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    is_object = isinstance(schema.get("properties"), Mapping) and schema.get("type") == "object"
    if is_object and "additionalProperties" not in schema and not schema.get(_PRESERVED):
        closed["additionalProperties"] = False
    return closed
