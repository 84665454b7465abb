"""The copy of a batch script that is run: its account, destination and number of nodes exchanged."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Final

from azcp_kit.quoting.shell import shell_word
from azcp_kit.rehearse.account import CREDENTIAL_NAMES, Emulator
from azcp_kit.rehearse.slurm.script import BatchScript

_COUNTS: Final = re.compile(
    r"(?P<name>--(?:nodes|ntasks|expect-ranks|nnodes|num-nodes|num_nodes)(?:=|\s+)['\"]?)"
    r"(?P<count>\d+)(?P<rest>-(?P<most>\d+))?(?![\w:.])"
)
_SHORT: Final = re.compile(r"(?P<name>(?<=\s)-[Nn](?:\s*|=))(?P<count>\d+)(?![\w:.])")
_CHECKED: Final = re.compile(
    r"(?P<name>SLURM_(?:JOB_NUM_NODES|NNODES|NTASKS|NPROCS)\b[^\n]{0,12}?"
    r"(?:[!=]?=|[<>]=?|-(?:eq|ne|lt|gt|le|ge))\s*['\"]?)(?P<count>\d+)(?!\w)"
)
_VARIABLES: Final = re.compile(
    r"(?P<name>\b(?:NNODES|AZCP_NODES|NUM_NODES|WORLD_SIZE)=['\"]?)(?P<count>\d+)(?!\w)"
)
_OF_SLURM: Final = re.compile(r"^\s*#SBATCH\b|\bsrun\b|\bsalloc\b", re.MULTILINE)
_ENROOT: Final = re.compile(r"\benroot start\b(?=[ \t])")
_IDENTITY: Final = re.compile(r"(--auth(?:=|\s+))identity\b")
_SECRET: Final = re.compile(
    rf"(?P<set>(?:^|(?<=[\s;]))(?P<name>{'|'.join(sorted(CREDENTIAL_NAMES))})=)"
    r"(?:\"[^\"\n]*\"|'[^'\n]*'|\$\([^()\n]*\)|[^\s\"'$;|&]\S*)(?=[\s;]|$)",
    re.MULTILINE,
)
_NO_PART: Final = r"(?<![\w./:-])"
_NO_MORE: Final = r"(?![\w.:-])"


@dataclass(frozen=True, slots=True)
class Edits:
    """What is another in the copy.

    Args:
        nodes: how many instead of the script's own.
        emulator: in the place of the accounts.
        destination: in the place of the script's own; empty to leave it.
        sas_files: by the script's own paths.
        credential: the name of a variable that has to reach into a container of enroot.
    """

    nodes: int
    emulator: Emulator
    destination: str
    sas_files: dict[str, str]
    credential: str


def edited(script: BatchScript, edits: Edits) -> str:
    """The copy."""
    text = scaled(script.text, script.nodes, edits.nodes)
    text = _IDENTITY.sub(r"\1auto", edits.emulator.url(text))
    text = _SECRET.sub(lambda match: _own_secret(match, script, edits.emulator), text)
    if edits.destination:
        text = moved(text, script.destination, edits.destination)
    for own, other in edits.sas_files.items():
        text = other.join(re.split(rf"(?<![\w./-]){re.escape(own)}(?![\w./-])", text))
    if edits.credential:
        text = _ENROOT.sub(f"enroot start --env {edits.credential}", text)
    return text


def _own_secret(match: re.Match[str], script: BatchScript, emulator: Emulator) -> str:
    """What the script itself gives a variable that lets it in."""
    account = script.sources[0].account if script.sources else ""
    value = emulator.variables({match["name"]: "given"}, [f"https://{account}.blob.core.windows.net/data/x"])
    return f"{match['set']}{shell_word(value[match['name']])}"


def own_destination(script: BatchScript, name: str) -> str:
    """Where the data goes instead, so that nothing of the user's is touched.

    Beside the script's own destination, for what has to be there for that one is enough for this one too;
    below it where it is a mount itself.
    """
    path = re.escape(script.destination)
    is_mounted = re.search(
        rf"(?<![\w.-]){path}/?:|:{path}(?![\w./-])|mounts?[= ]{path}(?![\w./-])", script.text
    )
    if is_mounted or posixpath.dirname(script.destination) == "/":
        return f"{script.destination}/{name}"
    return f"{script.destination}.{name}"


def moved(text: str, own: str, other: str) -> str:
    """The text with another destination; mounts stay, for what they name has to be there."""
    whole = re.compile(rf"{_NO_PART}(?<!mounts=){re.escape(own)}(?=/?{_NO_MORE})")
    return whole.sub(lambda _: other, text)


def scaled(text: str, before: int, after: int) -> str:
    """The text with another number of nodes, and with as many tasks on each of them as before."""
    if before == after:
        return text

    def change(match: re.Match[str]) -> str:
        count = int(match["count"])
        if not count or count % before:
            return match[0]
        most = f"-{after}" if match.groupdict().get("rest") else ""
        return f"{match['name']}{count // before * after}{most}"

    for pattern in (_COUNTS, _CHECKED, _VARIABLES):
        text = pattern.sub(change, text)
    lines = text.split("\n")
    # Elsewhere -n is another program's, such as that of head.
    return "\n".join(_SHORT.sub(change, line) if _OF_SLURM.search(line) else line for line in lines)
