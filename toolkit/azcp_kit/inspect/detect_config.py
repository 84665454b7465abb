"""What the image's config says about starting it, and who its user is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from azcp_kit.inspect.facts import Account, Config
from azcp_kit.inspect.files import ImageTree
from azcp_kit.inspect.secret_values import hide_arguments, hide_values

PASSWD: Final = "/etc/passwd"  # noqa: S105 - a path
_PASSWD_FIELDS: Final = 7
_LARGEST_UID: Final = 2**32 - 2


def detect_config(config: Mapping[str, object]) -> Config:
    """The engine's Config object; what is missing or null is empty."""
    return Config(
        user=_text(config, "User"),
        entrypoint=hide_arguments(_words(config, "Entrypoint")),
        cmd=hide_arguments(_words(config, "Cmd")),
        onbuild=hide_arguments(_words(config, "OnBuild")),
        healthcheck=hide_arguments(_words(_object(config, "Healthcheck"), "Test")),
        workdir=_text(config, "WorkingDir"),
        shell=_words(config, "Shell"),
        stop_signal=_text(config, "StopSignal"),
        volumes=tuple(sorted(_object(config, "Volumes"))),
        ports=tuple(sorted(_object(config, "ExposedPorts"))),
        env=hide_values(_environment(config)),
        labels=hide_values({name: str(value) for name, value in _object(config, "Labels").items()}),
    )


def detect_account(user: str, tree: ImageTree) -> Account:
    """The user of the config, which is empty, a name or a number, each perhaps with a group."""
    wanted = user.partition(":")[0] or "0"
    for line in tree.text(PASSWD).splitlines():
        fields = line.split(":")
        if len(fields) != _PASSWD_FIELDS or not _is_uid(fields[2]):
            continue
        if wanted in (fields[0], fields[2]):
            return Account(int(fields[2]), fields[0], fields[5])
    return Account(int(wanted) if _is_uid(wanted) else None, "", "")


def _is_uid(text: str) -> bool:
    return (
        text.isascii()
        and text.isdigit()
        and len(text) <= len(str(_LARGEST_UID))
        and int(text) <= _LARGEST_UID
    )


def _text(config: Mapping[str, object], name: str) -> str:
    value = config.get(name)
    return value if isinstance(value, str) else ""


def _words(config: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = config.get(name)
    return tuple(str(word) for word in value) if isinstance(value, list) else ()


def _object(config: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = config.get(name)
    return value if isinstance(value, dict) else {}


def _environment(config: Mapping[str, object]) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in _words(config, "Env"))
    return {name: value for name, _, value in pairs}
