"""A small tree of an image as the engine sends it: a tar whose names begin with its folder."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator

MANIFEST = b'{"schema": 1, "version": "9", "components": []}'
FILE, FOLDER, LINK, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
Entry = tuple[str, bytes, int, bytes | str]
TREE: tuple[Entry, ...] = (
    ("azcp", FOLDER, 0o755, b""),
    ("azcp/manifest.json", FILE, 0o644, MANIFEST),
    ("azcp/bin", FOLDER, 0o755, b""),
    ("azcp/bin/azcp-launch", FILE, 0o755, b"#!/opt/azcp/python"),
    ("azcp/bin/shared", FILE, 0o664, b"x"),
    ("azcp/bin/near", LINK, 0o777, "azcp-launch"),
    ("azcp/bin/far", LINK, 0o777, "/opt/azcp/bin/azcp-launch"),
    ("azcp/bin/again", HARD, 0o755, "azcp/bin/azcp-launch"),
)


def chunks(*entries: Entry, owner: int = 0) -> Iterator[bytes]:
    """A tar of them, in small pieces."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, kind, mode, content in entries:
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.uid, member.gid = kind, mode, owner, owner
            if isinstance(content, str):
                member.linkname = content
            else:
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    data = stream.getvalue()
    return (data[at : at + 1000] for at in range(0, len(data), 1000))
