"""The one door to asyncssh, which looks for libraries of the base when it is imported and must find none.

It would run ldconfig or a compiler to find libnettle and liboqs, map what they name into our processes, and
pay a fifth of the start for it. Both only add algorithms, for which `cryptography` has equals.
"""

from __future__ import annotations

import ctypes.util
from typing import Final

_find_library: Final = ctypes.util.find_library
ctypes.util.find_library = lambda name: None  # noqa: ARG005 - the name is part of the signature
try:
    import asyncssh
finally:
    ctypes.util.find_library = _find_library

__all__ = ["asyncssh"]
