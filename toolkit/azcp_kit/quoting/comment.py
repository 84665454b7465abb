"""A text made fit for a comment that ends with its line."""

from __future__ import annotations

from azcp_kit.shown import LONGEST, shown


def one_line(text: str, longest: int = LONGEST) -> str:
    """The text with each run of white space as one blank, control characters escaped, cut if it is long."""
    # str.split knows every character that ends a line for anybody, U+0085 and U+2028 among them.
    return shown(" ".join(text.split()), longest)
