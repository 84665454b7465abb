"""What the base's loader finds for every program and library of ours, asked as ldd asks it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import PreflightError
from azcp_runtime.contract.image import PREFIX, PYTHON
from azcp_runtime.contract.selftest import Subject
from azcp_runtime.selftest.allowed import is_allowed, is_rdma
from azcp_runtime.selftest.answer import Answer, fail, ok
from azcp_runtime.selftest.elf import Elf, elf_files, read_elf
from azcp_runtime.selftest.settings import rdma_kind
from azcp_runtime.selftest.trial import Surroundings
from azcp_runtime.source.names import shown

_LIMIT_S: Final = 20.0
_FOUND: Final = re.compile(r"\s*(?:(?P<name>\S+) => )?(?P<path>/.*?) \(0x[0-9a-f]+\)")
_ABSENT: Final = re.compile(r"\s*(\S+) => not found")
_REMEDY: Final = "build the image again; if its base sets LD_LIBRARY_PATH, only DT_RPATH comes before that"


@dataclass(frozen=True, slots=True)
class Traced:
    """What a file would be loaded with.

    Args:
        paths: the libraries that were found.
        absent: names of those that were not.
        error: what the loader said where it gave up.
    """

    paths: tuple[str, ...]
    absent: tuple[str, ...]
    error: str = ""


def prove_libraries(where: Surroundings) -> Answer:
    """Whether each finds what it needs, and finds it where it should."""
    rdma = rdma_kind()
    loader = loader_of(PYTHON)
    files = list(elf_files(PREFIX))
    problems = [
        problem for file in files for problem in objections(file, trace(loader, file.path, where.env), rdma)
    ]
    if problems:
        return fail(Subject.LIBRARIES, problems, _REMEDY)
    return ok(Subject.LIBRARIES, f"{len(files)} programs and libraries need {PREFIX} and the C library")


def loader_of(program: str) -> str:
    """The loader that a program names, which is the base's.

    Raises:
        PreflightError: it names none.
    """
    found = read_elf(program)
    if found is None or not found.interpreter:
        raise PreflightError(f"{program} is no program", remedy="build the image again")
    return found.interpreter


def trace(loader: str, path: str, env: Mapping[str, str]) -> Traced:
    """What the loader would load for the file, with the base's LD_LIBRARY_PATH in its way."""
    asked = {"LD_TRACE_LOADED_OBJECTS": "1"}
    if "LD_LIBRARY_PATH" in env:
        asked["LD_LIBRARY_PATH"] = env["LD_LIBRARY_PATH"]
    try:
        done = subprocess.run(  # noqa: S603 - an argument list
            [loader, path],
            env=asked,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Traced((), (), f"no answer within {_LIMIT_S:g} s")
    error = shown(done.stderr.strip() or b"ended badly") if done.returncode else ""
    return parse_trace(done.stdout.decode("utf-8", "surrogateescape"), error)


def parse_trace(text: str, error: str = "") -> Traced:
    """The loader's answer as ldd prints it."""
    lines = text.splitlines()
    found = [match["path"] for line in lines if (match := _FOUND.fullmatch(line))]
    absent = [match[1] for line in lines if (match := _ABSENT.fullmatch(line))]
    return Traced(tuple(found), tuple(absent), error)


def objections(file: Elf, traced: Traced, rdma: str) -> Iterator[str]:
    """What is wrong with how a file finds its libraries."""
    if traced.error:
        yield f"{_shown(file.path)}: {traced.error}"
    for name in traced.absent:
        # Modules of UCX that want a fabric are loaded only where there is one.
        if not (is_rdma(name) and rdma != "bundled"):
            yield f"{_shown(file.path)} does not find {_shown(name)}"
    for path in traced.paths:
        if not is_allowed(path, rdma):
            yield f"{_shown(file.path)} loads {_shown(path)} of the base"
    if file.has_runpath and any(path.startswith(f"{PREFIX}/") for path in traced.paths):
        yield f"{_shown(file.path)} has DT_RUNPATH, which comes after LD_LIBRARY_PATH"


def _shown(path: str) -> str:
    return shown(os.fsencode(path))
