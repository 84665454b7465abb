"""How the commands of the image read their command lines: errors are ours, values are checked at once."""

from __future__ import annotations

import argparse
from typing import Final, NoReturn

from azcp_runtime.contract import UsageError

_LARGEST_PORT: Final = 65535
_MOST_NODES: Final = 1 << 16


class Parser(argparse.ArgumentParser):
    """argparse, but its errors join ours instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Raise it.

        Raises:
            UsageError: always.
        """
        raise UsageError(message, remedy=f"see {self.prog} --help")


def port_number(text: str) -> int:
    """A port of 1 to 65535."""
    if not text.isdecimal() or not 1 <= int(text) <= _LARGEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


def seconds(text: str) -> float:
    """A finite time that is not negative."""
    try:
        value = float(text.removesuffix("s"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds")
    return value


def count(text: str) -> int:
    """A number from 1 on."""
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_NODES:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of nodes")
    return int(text)
