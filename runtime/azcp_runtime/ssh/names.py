"""What the job's nodes are called: mpirun knows them by their addresses, people by their names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from azcp_runtime.ssh.state import write_private

_FILE: Final = "names"


def remember_names(state: Path, addresses: Mapping[str, str]) -> None:
    """Keep them for the processes that mpirun starts here.

    Args:
        state: our folder.
        addresses: by name.
    """
    text = "".join(f"{address} {name}\n" for name, address in addresses.items())
    write_private(state / _FILE, text.encode())


def with_names(state: Path, text: str) -> str:
    """The text, each address in it followed by the name of its node."""
    try:
        lines = (state / _FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:  # nobody launched from here
        return text
    names = dict(line.split(" ", 1) for line in lines)
    # A word is an address with what punctuation follows it.
    words = [
        f"{names[bare]} ({bare}){word.removeprefix(bare)}" if (bare := word.rstrip(":,;.")) in names else word
        for word in text.split(" ")
    ]
    return " ".join(words)
