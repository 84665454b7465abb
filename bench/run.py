"""Runs the benches and prints their tables: python bench/run.py [a b c d e f g h l p r] [--quick]."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from importlib import import_module
from typing import Final

from nginx import AccountUnavailableError

_BENCHES: Final = {
    "a": ("shaped", "one pass on a shaped cluster of network namespaces"),
    "b": ("transport", "client CPU of the download engines"),
    "c": ("small_files", "many small files"),
    "d": ("plan_scale", "plan time and memory at a large scale"),
    "e": ("whole_run", "CPU and memory of a whole run"),
    "f": ("injection", "size and time of an injection"),
    "g": ("throttled", "an account that throttles"),
    "h": ("tuned", "chunk and window: by default, found by a probe, and the best of all on a shaped cluster"),
    "l": ("listing_scale", "the listing of a million blobs"),
    "p": ("predicted", "the time that azcp-kit plan predicts for a shaped cluster"),
    "r": ("two_rails", "one rail against two on a shaped cluster of network namespaces"),
}
_NEED_ROOT: Final = "ahpr"


def main(arguments: list[str] | None = None) -> int:
    """Run what was named, all by default."""
    parser = argparse.ArgumentParser(prog="bench/run.py", description=__doc__)
    names = "; ".join(f"{letter}: {what}" for letter, (_, what) in _BENCHES.items())
    parser.add_argument("bench", nargs="*", choices=[*_BENCHES, []], metavar="BENCH", help=names)
    parser.add_argument("--quick", action="store_true", help="less data, fewer repeats")
    options = parser.parse_args(arguments)
    # Ended by a signal, it still removes its processes, namespaces and folders.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    machine = f"{os.cpu_count()} CPUs, Linux {os.uname().release}"
    print(f"{machine}, load average {os.getloadavg()[0]:.1f} at the start\n", flush=True)
    for letter in options.bench or _BENCHES:
        _run(letter, quick=options.quick)
    return 0


def _run(letter: str, *, quick: bool) -> None:
    module, what = _BENCHES[letter]
    if letter in _NEED_ROOT and os.geteuid() != 0:
        print(f"({letter}) {what}: left out, network namespaces need root\n")
        return
    started_s = time.monotonic()
    try:
        for table in import_module(module).measure(quick=quick):
            print(table, end="\n\n", flush=True)
    except AccountUnavailableError as error:
        print(f"({letter}) {what}: left out, {error}\n", flush=True)
    print(f"({letter}) took {time.monotonic() - started_s:.0f} s", end="\n\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
