"""What no text file can hold, refused before it is quoted."""

from __future__ import annotations

from azcp_runtime.contract import UsageError

from azcp_kit.shown import shown


def expect_utf8(text: str) -> None:
    """Return if the text can be written as UTF-8.

    Raises:
        UsageError: it holds a lone surrogate, as an argument does whose bytes are no UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"'{shown(text, 80)}' is not valid UTF-8") from error
