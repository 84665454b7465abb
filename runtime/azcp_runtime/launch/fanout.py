"""Run a command on every node at once: signals go to all, the first failure ends the rest."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, Protocol

from azcp_runtime.contract import AzcpError, PreflightError
from azcp_runtime.launch.peers import Loss

GRACE_S: Final = 30.0
"""What Kubernetes gives a pod between SIGTERM and SIGKILL."""

_FORWARDED: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
)
_STOPPING: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_STARTS_AT_ONCE: Final = 32
LOST: Final = 255
"""As ssh says it: the end of the command was not seen."""


class Running(Protocol):
    """A command on one node."""

    async def wait(self) -> int:
        """Its exit status, as a shell says it."""

    def send(self, number: signal.Signals) -> None:
        """Pass a signal on; nothing where it has ended."""

    def drop(self) -> None:
        """End it now."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is to run on one node.

    Args:
        host: how the user calls the node.
        start: starts it there.
    """

    host: str
    start: Callable[[], Awaitable[Running]]


class _Fanout:
    """The commands of all nodes, until the last one has ended."""

    def __init__(
        self, tasks: Sequence[Task], say: Callable[[str], None], lost: Future[Loss], grace_s: float
    ) -> None:
        self._tasks = tasks
        self._say = say
        self._lost = lost
        self._grace_s = grace_s
        self._running: dict[str, Running] = {}
        self._starts = asyncio.Semaphore(_STARTS_AT_ONCE)
        self._failed = asyncio.Event()
        self._code = 0
        self._stops = 0

    async def run(self) -> int:
        """The first exit status that is not 0, or 0."""
        loop = asyncio.get_running_loop()
        for number in _FORWARDED:
            loop.add_signal_handler(number, self._pass_on, number)

        def lose(lost: Future[Loss]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: all had ended before
                loop.call_soon_threadsafe(self._lose, lost.result())

        self._lost.add_done_callback(lose)
        everyone = asyncio.gather(*(self._one(task) for task in self._tasks))
        failed = asyncio.ensure_future(self._failed.wait())
        watched: set[asyncio.Future[Any]] = {everyone, failed}
        await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
        if not everyone.done():
            await self._end_rest(everyone)
        failed.cancel()
        everyone.result()
        return self._code

    async def _one(self, task: Task) -> None:
        try:
            async with self._starts:
                if self._failed.is_set():
                    return
                running = await task.start()
            self._running[task.host] = running
            if self._failed.is_set():
                running.send(signal.SIGTERM)
            code = await running.wait()
        except PreflightError as error:
            self._fail(task.host, str(error), error.exit_code)
            return
        except OSError as error:
            self._fail(task.host, str(error), LOST)
            return
        finally:
            self._running.pop(task.host, None)
        if code:
            asked = ", as a signal asked it to" if self._stops else ""
            self._fail(task.host, f"the command ended with {code}{asked}", code)

    async def _end_rest(self, everyone: asyncio.Future[list[None]]) -> None:
        self._send_all(signal.SIGTERM)
        await asyncio.wait({everyone}, timeout=self._grace_s)
        for running in list(self._running.values()):
            running.drop()
        await everyone

    def _lose(self, loss: Loss) -> None:
        self._fail(loss.host, loss.reason, loss.code)
        if loss.host in self._running:  # it would not hear that it should end
            self._running[loss.host].drop()

    def _fail(self, host: str, what: str, code: int) -> None:
        if not self._failed.is_set():
            others = " and the others are asked to end" if self._running.keys() - {host} else ""
            self._say(f"{host}: {what}{others}")
            self._code = code
            self._failed.set()

    def _pass_on(self, number: signal.Signals) -> None:
        """To all; a second wish to stop is not passed on but carried out."""
        self._stops += number in _STOPPING
        if number in _STOPPING and self._stops > 1:
            self._say("stopped again: what still runs is ended now")
            for running in list(self._running.values()):
                running.drop()
            return
        self._send_all(number)

    def _send_all(self, number: signal.Signals) -> None:
        for running in list(self._running.values()):
            running.send(number)


def run_everywhere(
    tasks: Sequence[Task],
    say: Callable[[str], None],
    lost: Future[Loss] | None = None,
    *,
    grace_s: float = GRACE_S,
) -> int:
    """The first exit status that is not 0, or 0 once all have ended.

    Args:
        tasks: one per node.
        say: where a failure is told.
        lost: a node that is found to be lost by other means than its command.
        grace_s: how long the others may take to end after one has failed.

    Raises:
        AzcpError: nothing could be started at all.
    """
    if not tasks:
        raise AzcpError("there is no node to run on")
    return asyncio.run(_Fanout(tasks, say, lost or Future(), grace_s).run())
