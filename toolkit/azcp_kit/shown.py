"""Text of others, such as an image's labels, made fit for a terminal: no character of it can drive one."""

from __future__ import annotations

LONGEST = 200


def shown(text: str, longest: int = LONGEST) -> str:
    """The text on one line, control characters escaped, cut after `longest` characters."""
    # Characters that reorder or hide text are not printable either, so they are escaped too.
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return escaped if len(escaped) <= longest else f"{escaped[:longest]}..."
