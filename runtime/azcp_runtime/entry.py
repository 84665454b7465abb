"""The commands of the image: each script below /opt/azcp/bin calls one of these functions and nothing else.

What they share is here: a clean environment first, then the command, its errors in one line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from azcp_runtime import console
from azcp_runtime.contract import AzcpError
from azcp_runtime.isolate import is_clean, mpi_environment, restored, scrubbed, start_again


def distribute() -> NoReturn:
    """azcp-distribute, as a rank or alone."""

    def main() -> int:
        _become_rank()
        from azcp_runtime.__main__ import main

        return main()

    _end("azcp-distribute", main)


def launch() -> NoReturn:
    """azcp-launch."""

    def main() -> int:
        from azcp_runtime.launch import command

        if not is_clean(os.environ):
            command.remember_launcher()
            start_again(scrubbed(os.environ))
        return command.main(sys.argv[1:])

    _end("azcp-launch", main)


def mpirun() -> NoReturn:
    """azcp-mpirun."""

    def main() -> int:
        from azcp_runtime.launch.mpirun import main

        _scrub()
        return main(sys.argv[1:])

    _end("azcp-mpirun", main)


def sshd() -> NoReturn:
    """azcp-sshd."""

    def main() -> int:
        from azcp_runtime.ssh import daemon

        if not is_clean(os.environ):
            daemon.remember_container()
            start_again(scrubbed(os.environ))
        return daemon.main(sys.argv[1:])

    _end("azcp-sshd", main)


def doctor() -> NoReturn:
    """azcp-doctor, as a rank or alone."""

    def main() -> int:
        _become_rank()
        from azcp_runtime.doctor.command import main

        return main(sys.argv[1:])

    _end("azcp-doctor", main)


def ssh() -> NoReturn:
    """azcp-ssh, the remote-shell agent: not scrubbed, a second start would double what it costs."""

    def main() -> int:
        from azcp_runtime.ssh.agent import main

        return main(sys.argv[1:])

    _end("azcp-ssh", main)


def orted() -> NoReturn:
    """azcp-orted, the launch agent."""

    def main() -> int:
        from azcp_runtime.launch.orted import become_orted

        become_orted(sys.argv[1:])

    _end("azcp-orted", main)


def step() -> NoReturn:
    """azcp-step, the user's command on one node."""

    def main() -> int:
        from azcp_runtime.launch.step import become_command

        become_command(sys.argv[1:])

    _end("azcp-step", main)


def rank() -> NoReturn:
    """azcp-rank, a command in a Slurm step."""

    def main() -> int:
        from azcp_runtime.launch.rank import become_ranked

        become_ranked(sys.argv[1:])

    _end("azcp-rank", main)


def rails() -> NoReturn:
    """azcp-rails, what this node has for them."""

    def main() -> int:
        from azcp_runtime.rails.survey import main

        _scrub()
        return main()

    _end("azcp-rails", main)


def tether() -> NoReturn:
    """azcp-tether, the leader's line to a member."""

    def main() -> int:
        from azcp_runtime.launch.tether import main

        return main()

    _end("azcp-tether", main)


def hold() -> NoReturn:
    """azcp-hold."""

    def main() -> int:
        from azcp_runtime.hold import main

        main()

    _end("azcp-hold", main)


def _become_rank() -> None:
    """Go on in a clean environment that keeps what a launcher told its rank."""
    from azcp_runtime.mpi.launch import launched_by_mpi

    if not is_clean(os.environ):
        from azcp_runtime.ssh.state import state_dir

        is_rank = launched_by_mpi(os.environ) or "SLURM_PROCID" in os.environ
        start_again(mpi_environment(os.environ, state_dir(os.environ), os.geteuid(), is_rank=is_rank))
    # What the launcher's node handed over came after the node's own environment was scrubbed.
    os.environ.update(restored(os.environ))


def _scrub() -> None:
    if not is_clean(os.environ):
        start_again(scrubbed(os.environ))


def _end(name: str, main: Callable[[], int]) -> NoReturn:
    console.install()
    try:
        code = main()
    except AzcpError as error:
        from azcp_runtime.scrub import scrub

        print(scrub(f"{name}: {error}", os.environ), file=sys.stderr)
        code = error.exit_code
    sys.exit(code)
