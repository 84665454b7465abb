"""A text as a string of a TOML file (TOML 1.0, basic strings)."""

from __future__ import annotations

from typing import Final

from azcp_kit.quoting.utf8 import expect_utf8

_SHORT: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}
_LAST_OF_FOUR_DIGITS: Final = 0xFFFF


def toml_string(text: str) -> str:
    """The text in double quotes, on one line; what cannot be seen is escaped, so that nothing hides there.

    Raises:
        UsageError: TOML cannot say it.
    """
    expect_utf8(text)
    return f'"{"".join(_escaped(character) for character in text)}"'


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= _LAST_OF_FOUR_DIGITS else f"\\U{code:08x}"
