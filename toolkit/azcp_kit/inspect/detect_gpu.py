"""The GPU libraries of the image: CUDA or ROCm, and NCCL."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from azcp_kit.inspect.facts import Gpu
from azcp_kit.inspect.files import ImageTree
from azcp_kit.inspect.libraries import Libraries

_CUDA_JSON: Final = "/usr/local/cuda/version.json"
_CUDA_TEXT: Final = "/usr/local/cuda/version.txt"
_ROCM: Final = "/opt/rocm/.info/version"
_CUDA_RUNTIMES: Final = ("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0")
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+")
_IN_FILE_NAME: Final = re.compile(r"\.so\.(\d+(?:\.\d+)+)$")


def detect_gpu(libraries: Libraries, env: Mapping[str, str]) -> Gpu:
    """Versions by the files, or else by the variables that vendors' images set."""
    tree = libraries.tree
    cuda = _cuda(tree) or env.get("CUDA_VERSION", "") or _by_file_name(libraries, *_CUDA_RUNTIMES)
    rocm = _first_version(tree.text(_ROCM)) or env.get("ROCM_VERSION", "")
    return Gpu(cuda, rocm, _by_file_name(libraries, "libnccl.so.2", "librccl.so.1"))


def _cuda(tree: ImageTree) -> str:
    try:
        return str(json.loads(tree.text(_CUDA_JSON))["cuda"]["version"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return _first_version(tree.text(_CUDA_TEXT))


def _by_file_name(libraries: Libraries, *names: str) -> str:
    matches = (_IN_FILE_NAME.search(path) for name in names for path in libraries.find(name))
    return next((match[1] for match in matches if match), "")


def _first_version(text: str) -> str:
    match = _VERSION.search(text[:4096])
    return match[0] if match else ""
