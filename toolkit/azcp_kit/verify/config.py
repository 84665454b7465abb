"""Compares the config of an image with its base's: what starts it, and in what, must be as before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from azcp_kit.inspect.secret_values import HIDDEN, names_a_secret, without_secrets
from azcp_kit.shown import shown
from azcp_kit.verify.verification import Check, judged

OWN_LABEL: Final = "io.azcp."
"""How the labels begin that an injection may add."""

_GROUPS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("base ENV", ("Env",)),
    ("base USER", ("User",)),
    ("base ENTRYPOINT and CMD", ("Entrypoint", "Cmd", "Shell", "StopSignal", "StopTimeout")),
    ("base WORKDIR", ("WorkingDir",)),
    ("base HEALTHCHECK", ("Healthcheck",)),
    ("base VOLUME and EXPOSE", ("Volumes", "ExposedPorts")),
    ("base ONBUILD", ("OnBuild",)),
    ("base LABEL", ("Labels",)),
)
_REMEDY: Final = "build from the base itself; what a job needs beside it belongs in its manifest"


def compare_config(image: Mapping[str, object], base: Mapping[str, object]) -> tuple[Check, ...]:
    """A check for each part of the config; names of variables are told, values that may be secret are not."""
    return tuple(
        judged(
            name,
            tuple(problem for field in fields for problem in _differences(field, image, base)),
            "as before",
            _REMEDY,
        )
        for name, fields in _GROUPS
    )


def added_secrets(image: Mapping[str, object], base: Mapping[str, object]) -> tuple[str, ...]:
    """What the config holds beyond its base's that looks like a secret."""
    found = []
    for field in ("Env", "Labels"):
        before = _pairs(field, base.get(field))
        for name, value in _pairs(field, image.get(field)).items():
            is_secret = names_a_secret(name) or without_secrets(value) != value
            if value and is_secret and before.get(name) != value:
                found.append(f"{field} {shown(name)}")
    for field in ("Entrypoint", "Cmd", "OnBuild"):
        text = str(image.get(field) or "")
        if text != str(base.get(field) or "") and without_secrets(text) != text:
            found.append(field)
    return tuple(found)


def _differences(field: str, image: Mapping[str, object], base: Mapping[str, object]) -> Iterator[str]:
    now, before = image.get(field) or None, base.get(field) or None
    if field in ("Env", "Labels"):
        yield from _changed_pairs(field, _pairs(field, now), _pairs(field, before))
    elif field == "WorkingDir" and {now, before} <= {None, "/"}:
        return  # builders write the default out or leave it out
    elif now != before:
        yield f"{field} is {_told(now)}, was {_told(before)}"


def _changed_pairs(field: str, now: Mapping[str, str], before: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(now.keys() | before.keys()):
        if field == "Labels" and name.startswith(OWN_LABEL):
            continue
        if name not in before:
            yield f"{shown(name)} is set"
        elif name not in now:
            yield f"{shown(name)} is gone"
        elif now[name] != before[name]:
            yield f"{shown(name)} has another value"


def _pairs(field: str, value: object) -> dict[str, str]:
    if field == "Labels":
        return {str(name): str(text) for name, text in value.items()} if isinstance(value, Mapping) else {}
    entries = value if isinstance(value, list) else []
    pairs = (str(entry).partition("=") for entry in entries)
    return {name: text for name, _, text in pairs}


def _told(value: object) -> str:
    if value is None:
        return "not set"
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    safe = without_secrets(text)
    return HIDDEN if safe != text else shown(text, 80)
