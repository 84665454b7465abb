"""The emulator in the account's place: what of a container's words and variables is another here."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote, urlencode

from azcp_runtime.contract import ENV_ACCOUNT_KEY, ENV_SAS

_URL: Final = re.compile(
    r"https://(?P<account>[a-z0-9]{3,24})(?:\.z\d+)?\.(?:blob|dfs)\."
    r"(?:core\.(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net)|storage\.azure\.net)"
    r"(?P<path>/[^\s\"'?]*)?(?:\?(?P<query>[^\s\"']*))?"
)
_CONTAINER: Final = re.compile(r"[a-z0-9](?:-?[a-z0-9]){2,62}|\$root")
_PROGRAMS: Final = ("azcp-launch", "azcp-distribute")
_SAS_NAMES: Final = frozenset({ENV_SAS, "AZURE_STORAGE_SAS_TOKEN"})
_KEY_NAMES: Final = frozenset({ENV_ACCOUNT_KEY, "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"})
_CONNECTION: Final = "AZURE_STORAGE_CONNECTION_STRING"
CREDENTIAL_NAMES: Final = _SAS_NAMES | _KEY_NAMES | {_CONNECTION}
"""Variables that let somebody into an account."""

_VALID_S: Final = 86400
SIGNATURE: Final = re.compile(r"\bsig=[^&\s]+")
"""The part of a shared access signature that nobody may see."""


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A place in an account that a manifest reads from; the prefix is decoded, without slashes round it."""

    account: str
    container: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Emulator:
    """The account's stand-in as containers see it: `base` is http://ADDRESS:PORT."""

    base: str
    key: str = field(repr=False)

    def url(self, text: str) -> str:
        """The text with every URL of an account as the emulator's, its SAS too."""
        return _URL.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        query = f"?{self.sas(match['account'])}" if match["query"] else ""
        return f"{self.base}/{match['account']}{match['path'] or ''}{query}"

    def sas(self, account: str) -> str:
        """A shared access signature that reads and lists all of an account, for a day.

        As the service's reference describes an account SAS of version 2020-12-06 and later.
        """
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + _VALID_S))
        fields = {"sp": "rl", "ss": "b", "srt": "sco", "se": until, "spr": "https,http", "sv": "2022-11-02"}
        signed = [
            account,
            *(fields[key] for key in ("sp", "ss", "srt")),
            "",
            until,
            "",
            fields["spr"],
            fields["sv"],
        ]
        text = "\n".join([*signed, "", ""])
        digest = hmac.digest(base64.b64decode(self.key), text.encode(), hashlib.sha256)
        return urlencode({**fields, "sig": base64.b64encode(digest).decode()}, quote_via=quote)

    def variables(self, own: Mapping[str, str], words: Iterable[str]) -> dict[str, str]:
        """A container's variables, with the emulator's URLs and credentials in place of the account's.

        One that reads from an account without any credential of its own, which an identity would let in,
        is let in by the emulator's key: no identity can be had here.
        """
        words = tuple(words)
        sources = find_sources([*words, *own.values()])
        account = sources[0].account if sources else ""
        found = {name: self._variable(name, value, account) for name, value in own.items()}
        has_own = any(own.get(name) for name in CREDENTIAL_NAMES) or _names_sas_file(words)
        if sources and not has_own:
            found[ENV_ACCOUNT_KEY] = self.key
        return found

    def _variable(self, name: str, value: str, account: str) -> str:
        if not value or name not in CREDENTIAL_NAMES:
            return self.url(value)
        if name in _SAS_NAMES:
            return self.sas(account)
        if name in _KEY_NAMES:
            return self.key
        endpoint = f"{self.base}/{account}"
        parts = {"AccountName": account, "AccountKey": self.key, "BlobEndpoint": endpoint}
        return ";".join(f"{part}={text}" for part, text in parts.items())

    def words(self, own: Sequence[str]) -> tuple[str, ...]:
        """A command line with the emulator's URLs; no identity is asked for."""
        found = [self.url(word) for word in own]
        for index, word in enumerate(found):
            if word == "--auth=identity":
                found[index] = "--auth=auto"
            elif word == "identity" and index and found[index - 1] == "--auth":
                found[index] = "auto"
        return tuple(found)

    def file(self, content: bytes, account: str) -> bytes:
        """A file of a Secret; one that is a SAS is the emulator's."""
        is_sas = SIGNATURE.search(content.decode(errors="replace")) or content == MADE_UP_SAS
        return self.sas(account).encode() if is_sas else self.url(content.decode("latin-1")).encode("latin-1")


MADE_UP_SAS: Final = b"sas-of-the-rehearsal"
"""Stands in a Secret for a SAS until the emulator is there to sign one."""


def find_sources(texts: Iterable[str]) -> tuple[Source, ...]:
    """The places in accounts that URLs in the texts name."""
    found: dict[Source, None] = {}
    for text in texts:
        for match in _URL.finditer(text):
            container, _, prefix = (match["path"] or "").lstrip("/").partition("/")
            if _CONTAINER.fullmatch(container):
                found[Source(match["account"], container, unquote(prefix).strip("/"))] = None
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Distribution:
    """What a command line distributes: from where, whereto, and whether each node runs the same one."""

    source: str
    destination: str
    is_every_node: bool


def find_distribution(words: Sequence[str]) -> Distribution | None:
    """What azcp-launch or azcp-distribute in the command line, or in a shell's text there, is told to do."""
    for _, rest in told_words(words):
        for position, candidate in enumerate(rest[:-1]):
            if candidate.startswith(("/", "http://", "https://")) and rest[position + 1].startswith("/"):
                return Distribution(candidate, rest[position + 1], "--every-node" in rest)
    return None


def told_words(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each program of ours in the command line, or in a shell's text there, with its words up to a --."""
    flat = [part for word in words for part in _split(word)]
    for index, word in enumerate(flat):
        program = word.rpartition("/")[2]
        if program in _PROGRAMS:
            rest = flat[index + 1 :]
            yield program, rest[: rest.index("--")] if "--" in rest else rest


def sas_files(words: Sequence[str]) -> tuple[str, ...]:
    """The paths that --sas-file names."""
    flat = [part for word in words for part in _split(word)]
    after = [flat[index + 1] for index, word in enumerate(flat[:-1]) if word == "--sas-file"]
    return (*after, *(word.partition("=")[2] for word in flat if word.startswith("--sas-file=")))


def _names_sas_file(words: Sequence[str]) -> bool:
    return bool(sas_files(words))


def _split(word: str) -> list[str]:
    """The words of a shell's text; a word of an argument list is itself."""
    if not any(f"{program} " in word for program in _PROGRAMS):
        return [word]
    try:
        return shlex.split(word, comments=True)
    except ValueError:
        return word.split()
