"""RDMA user space of the image: libibverbs, its providers, librdmacm, and the OFED that brought them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from azcp_kit.inspect.facts import Verbs
from azcp_kit.inspect.libraries import Libraries

_OFED_INFO: Final = "/usr/bin/ofed_info"
# libibverbs.so.1.14.44.0 is that of rdma-core 44.0: the interface's version, then the release.
_RELEASE: Final = re.compile(r"/libibverbs\.so\.1\.\d+\.(\d+\.\d+)$")
_PROVIDER: Final = re.compile(r"lib([a-z0-9_]+)-rdmav\d+\.so")
_OFED: Final = re.compile(r"\b((?:MLNX_OFED_LINUX|OFED-internal|DOCA-OFED)-\d[\w.-]{0,40})")


def detect_verbs(libraries: Libraries, env: Mapping[str, str]) -> Verbs:
    """The libraries that the loader would choose, and the providers in the folder beside them."""
    library = next(iter(libraries.find("libibverbs.so.1")), "")
    release = _RELEASE.search(library)
    return Verbs(
        library=library,
        version=release[1] if release else "",
        providers=_providers(libraries, library),
        rdmacm=next(iter(libraries.find("librdmacm.so.1")), ""),
        mofed=_mofed(libraries, env),
    )


def _providers(libraries: Libraries, library: str) -> tuple[str, ...]:
    if not library:
        return ()
    names = libraries.tree.names(f"{library.rpartition('/')[0]}/libibverbs")
    matches = (_PROVIDER.fullmatch(name) for name in names)
    return tuple(sorted({match[1] for match in matches if match}))


def _mofed(libraries: Libraries, env: Mapping[str, str]) -> str:
    match = _OFED.search(libraries.tree.text(_OFED_INFO))
    return match[1].rstrip(".:-") if match else env.get("MOFED_VERSION", "")
