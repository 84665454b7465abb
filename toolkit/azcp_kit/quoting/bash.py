"""A text as one word of a bash script that sbatch takes: nothing in it ends a line."""

from __future__ import annotations

from typing import Final

from azcp_kit.quoting.shell import shell_word

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "'": "\\'", "\\": "\\\\"}


def bash_word(text: str) -> str:
    """The text, quoted where the shell would see more in it than a word.

    With control characters as $'...', for sbatch refuses a script with carriage returns.

    Raises:
        UsageError: it has a NUL, which no argument can hold, or no bytes in UTF-8.
    """
    plain = shell_word(text)
    # Readers, shellcheck among them, take a $ between plain quotes for one that was to be expanded.
    if not any(_is_control(character) or character in "$`" for character in text):
        # And a bare comma between the words of an array for a mistake.
        return f"'{plain}'" if plain == text and "," in text else plain
    return "$'" + "".join(_escaped(character) for character in text) + "'"


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    # Three octal digits: what follows cannot be taken for another digit.
    return f"\\{ord(character):03o}" if _is_control(character) else character


def _is_control(character: str) -> bool:
    return character < " " or character == "\x7f"
