"""Compiles the private Python's modules beforehand: a read-only root could not keep what a start compiles."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Final

from azcp_runtime.contract import PreflightError

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 600.0

# Unchecked hashes: no time stamp is stored, and none is looked at when a module is imported. Marshalling
# what was marshalled makes the bytes independent of reference counts, which differ from run to run.
_PROGRAM: Final = """
import importlib.util, marshal, pathlib, sys
root, prefix = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
for path in sorted(root.rglob("*.py")):
    source = path.read_bytes()
    try:
        code = compile(source, str(prefix / path.relative_to(root)), "exec", dont_inherit=True, optimize=0)
    except SyntaxError:
        continue
    code = marshal.loads(marshal.dumps(code))
    target = pathlib.Path(importlib.util.cache_from_source(str(path)))
    target.parent.mkdir(exist_ok=True)
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source)
    target.write_bytes(head + marshal.dumps(code))
"""


def compile_modules(root: Path, prefix: str, interpreter: Path, version: tuple[int, int]) -> bool:
    """Compile every module below `root`, as it will be called below `prefix`; whether that could be done.

    Byte code depends on Python's minor version alone. Where the private interpreter cannot run here
    (another architecture), the one that runs this does it, if it is of the same version.

    Raises:
        PreflightError: the compiler failed.
    """
    python = interpreter if _runs(interpreter) else Path(sys.executable)
    if python != interpreter and sys.version_info[:2] != version:
        wanted = ".".join(map(str, version))
        log.warning(
            "no Python %s runs here to compile the modules: each start in the image is slower", wanted
        )
        return False
    command = [str(python), "-I", "-S", "-c", _PROGRAM, str(root), prefix]
    done = subprocess.run(  # noqa: S603 - an argument list
        command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        reason = done.stderr.strip().rpartition("\n")[2]  # the last line of the traceback
        raise PreflightError(f"{python} cannot compile the modules: {reason}")
    return True


def _runs(interpreter: Path) -> bool:
    try:
        probe = [str(interpreter), "-I", "-S", "-c", ""]
        done = subprocess.run(probe, capture_output=True, check=False)  # noqa: S603 - an argument list
    except OSError:  # another architecture: exec format error
        return False
    return done.returncode == 0
