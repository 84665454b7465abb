"""Secrets in an image's config are hidden before they become facts, so that nothing later can print them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

HIDDEN: Final = "***"

_NAMES: Final = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|CONNECTION_?STRING|APIKEY|AUTH(?!OR)|(?:^|_)(?:KEY|SAS|SIG|PAT|PWD)(?:_|$)",
    re.IGNORECASE,
)
_NOT_SECRET: Final = frozenset({"PWD", "OLDPWD"})
_OPTION: Final = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_.-]*")
_ASSIGNMENT: Final = re.compile(
    r"(?<![\w/.-])(-{0,2}[A-Za-z_][A-Za-z0-9_.-]{0,80})(=|: ?| (?!-))([^\s\"';&]+)"
)
_VALUES: Final = (
    re.compile(r"(?i)(\bsig(?:=|%3D))[^&\s\"'<>)\]]+"),
    re.compile(r"(?i)(\b(?:AccountKey|SharedAccessSignature)=)[^;\s\"']+"),
    re.compile(r"(?i)(\bBearer )[A-Za-z0-9._~+/=-]+"),
    # user:password@ of a proxy or an index, in a bounded form so that no input makes it slow.
    re.compile(r"(://)[^/\s@]{1,512}(?=@)"),
    re.compile(r"()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9._-]+"),
    re.compile(r"()\b(?:gh[pousr]_|hf_|sk-|glpat-|nvapi-)[A-Za-z0-9_-]{16,}"),
    re.compile(r"(?s)()-----BEGIN [A-Z ]*PRIVATE KEY-----.*"),
)


def names_a_secret(name: str) -> bool:
    """Whether a variable, a label or an option of that name is likely to hold a secret."""
    plain = name.lstrip("-").replace("-", "_").replace(".", "_")
    # wandbApiKey and the like: a capital after a small letter begins a word.
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)
    return plain.upper() not in _NOT_SECRET and _NAMES.search(words) is not None


def without_secrets(text: str) -> str:
    """The text without what looks like a signature, a key, a token or a password."""
    for pattern in _VALUES:
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return _ASSIGNMENT.sub(_hide_assigned, text)


def hide_values(values: Mapping[str, str]) -> dict[str, str]:
    """Variables or labels, the secret values hidden."""
    return {
        name: HIDDEN if value and names_a_secret(name) else without_secrets(value)
        for name, value in values.items()
    }


def hide_arguments(arguments: Iterable[str]) -> tuple[str, ...]:
    """A command's arguments, also without the word that follows an option like --token."""
    shown: list[str] = []
    before = ""
    for argument in arguments:
        follows = _OPTION.fullmatch(before) and names_a_secret(before) and not argument.startswith("-")
        shown.append(HIDDEN if follows else without_secrets(argument))
        before = argument
    return tuple(shown)


def _hide_assigned(match: re.Match[str]) -> str:
    name, sign = match[1], match[2]
    # "a key to" is prose; "--key to" is an option with its value.
    is_option = sign != " " or name.startswith("-")
    return f"{name}{sign}{HIDDEN}" if is_option and names_a_secret(name) else match[0]
