"""python3 -I -m azcp_runtime.selftest MARK SUBJECT...: one line for each answer, as soon as it is known."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from azcp_runtime.contract import AzcpError
from azcp_runtime.contract.image import PYTHON
from azcp_runtime.contract.selftest import Subject
from azcp_runtime.selftest.answer import Answer, fail
from azcp_runtime.selftest.distribute import prove_distribute
from azcp_runtime.selftest.libraries import loader_of, prove_libraries, trace
from azcp_runtime.selftest.server import prove_sshd
from azcp_runtime.selftest.settings import rdma_kind
from azcp_runtime.selftest.trial import Surroundings
from azcp_runtime.selftest.watch import Watch
from azcp_runtime.ssh.state import state_dir


def main(argv: Sequence[str]) -> int:
    """Prove the subjects; 0 if each has an answer, whatever it is."""
    mark, *names = argv
    watch = Watch()
    with _surroundings() as where:
        for name in names:
            print(_prove(Subject(name), where, watch).line(mark), flush=True)
    return 0


def _prove(subject: Subject, where: Surroundings, watch: Watch) -> Answer:
    proofs: dict[Subject, Callable[[], Answer]] = {
        Subject.LIBRARIES: lambda: prove_libraries(where),
        Subject.DISTRIBUTE: lambda: prove_distribute(where, watch),
        Subject.SSHD: lambda: prove_sshd(where, watch),
        Subject.PROCESSES: lambda: _prove_processes(watch),
    }
    try:
        return proofs[subject]()
    except (AzcpError, OSError) as error:
        return fail(subject, [str(error)], "the image is damaged; build it again")


def _prove_processes(watch: Watch) -> Answer:
    loader = loader_of(PYTHON)
    return watch.answer(rdma_kind(), lambda library: trace(loader, library, {}).paths)


@contextmanager
def _surroundings() -> Iterator[Surroundings]:
    """A folder for all that is written, where the image's own commands keep their state."""
    state = state_dir(os.environ)
    work = Path(tempfile.mkdtemp(prefix="selftest-", dir=state))
    try:
        yield Surroundings(work, dict(os.environ))
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
