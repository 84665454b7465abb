"""Programs that take the place of a user's own in an image: each looks for the data and says that it ran."""

from __future__ import annotations

import io
import tarfile
from typing import Final

from docker import DockerClient

REPOSITORY: Final = "azcp-kit-lab-stand-ins"
_EXECUTABLE: Final = 0o755
_BATCH: Final = """\
#!/bin/sh
# The data is the last argument.
for last; do :; done
echo "phase 2 on ${RANK:-$HOSTNAME} of ${NNODES:-1}"
exec test -d "$last/checkpoint"
"""
_SERVER: Final = """\
#!/bin/sh
echo "phase 2 on $HOSTNAME"
test -d "$2/checkpoint" || exit 1
exec /opt/azcp/python/bin/python3 -I -m http.server "$4" --directory "$2"
"""
PROGRAMS: Final = {"usr/bin/torchrun": _BATCH, "opt/embed/run": _BATCH, "usr/bin/vllm": _SERVER}


def with_stand_ins(client: DockerClient, image: str, name: str) -> str:
    """The reference of an image like the one given, with the programs in it.

    Raises:
        RuntimeError: it cannot be built.
    """
    tag = f"{REPOSITORY}:{name}"
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as context:
        _add(context, "Dockerfile", f"FROM {image}\nCOPY root/ /\n", 0o644)
        for path, text in PROGRAMS.items():
            _add(context, f"root/{path}", text, _EXECUTABLE)
    stream.seek(0)
    for message in client.api.build(fileobj=stream, custom_context=True, tag=tag, decode=True, rm=True):
        if "error" in message:
            raise RuntimeError(f"{tag} cannot be built: {message['error']}")
    return tag


def _add(context: tarfile.TarFile, name: str, text: str, mode: int) -> None:
    member = tarfile.TarInfo(name)
    content = text.encode()
    member.size, member.mode = len(content), mode
    context.addfile(member, io.BytesIO(content))
