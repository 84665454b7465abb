"""A program of a few bytes that holds a pod's network and volumes, and needs nothing of any image."""

from __future__ import annotations

import io
import struct
import tarfile
from typing import Final

from azcp_runtime.contract import PreflightError

from azcp_kit.shown import shown

PATH: Final = "/holder"
_BASE: Final = 0x400000
_HEADERS: Final = 64 + 56
# pause(2) for ever: mov eax, 34; syscall; jmp back.
_AMD64: Final = bytes.fromhex("b822000000 0f05 ebf7")
# arm64 has no pause(2): ppoll(0, 0, 0, 0, 0) for ever.
_ARM64: Final = struct.pack(
    "<8I",
    *(0xD2800000 | register for register in range(5)),
    0xD2800000 | 73 << 5 | 8,
    0xD4000001,
    0x17FFFFF9,
)
_MACHINES: Final = {
    "amd64": (62, _AMD64),
    "x86_64": (62, _AMD64),
    "arm64": (183, _ARM64),
    "aarch64": (183, _ARM64),
}
_EXECUTABLE: Final = 0o755


def holder_image(architecture: str) -> bytes:
    """A root file system with the program alone, as a tar.

    Raises:
        PreflightError: it is not known how to write it for that processor.
    """
    program = holder_program(architecture)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        member = tarfile.TarInfo(PATH.lstrip("/"))
        member.size, member.mode = len(program), _EXECUTABLE
        tar.addfile(member, io.BytesIO(program))
    return stream.getvalue()


def holder_program(architecture: str) -> bytes:
    """A static ELF executable: one header, one segment, a few instructions.

    Raises:
        PreflightError: it is not known how to write it for that processor.
    """
    if architecture not in _MACHINES:
        raise PreflightError(
            f"the engine's machine is {shown(architecture)}", remedy="rehearse on amd64 or arm64"
        )
    machine, code = _MACHINES[architecture]
    size = _HEADERS + len(code)
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", identity, 2, machine, 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 64, 0, 0
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x10000)
    return header + segment + code
