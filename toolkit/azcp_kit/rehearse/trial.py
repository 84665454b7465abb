"""One container of a pod over all its starts: when it is started again, and whether its probes succeed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from azcp_runtime.contract import PreflightError

from azcp_kit.rehearse.environment import ContainerConfigError
from azcp_kit.rehearse.pod import Container, Restart
from azcp_kit.rehearse.probe import Probe
from azcp_kit.rehearse.runtime import Ended, Runtime, Sandbox
from azcp_kit.shown import shown
from azcp_kit.units import format_seconds

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 10.0
"""Of the pauses between two starts, which the kubelet makes ten times as long."""
_PROBE_PERIOD_S: Final = 1.0
"""At most: how soon it is known is no property of the manifest that a desk could show."""
_NOT_STARTED: Final = 128
_AFTER: Final = "unable to start container process: "
_LAST_LINES: Final = 20
_LONGEST_WORDS: Final = 1 << 14
_MOST_CRASHES: Final = 4
"""Of starts one after the other: the first, and three more."""


@dataclass(slots=True)
class Start:
    """One start of a container.

    Args:
        name: the engine's; empty where it could not be started.
        started_s: when.
        ended_s, ended: when and how it ended; None while it runs.
        was_ready: its probe has succeeded.
        words: the last line that it said, of one that failed.
    """

    name: str
    started_s: float
    ended_s: float | None = None
    ended: Ended | None = None
    was_ready: bool = False
    words: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether it has ended, and not well."""
        return self.ended is not None and self.ended.code != 0


class Trial:
    """A container of a pod."""

    def __init__(self, container: Container, runtime: Runtime, say: Callable[[str], None]) -> None:
        self.container = container
        self.starts: list[Start] = []
        self.next_s: float | None = 0.0
        self.is_up = False
        self.is_ready = False
        self._runtime = runtime
        self._say = say
        self._successes = 0
        self._failures = 0
        self._probed_s = 0.0

    @property
    def last(self) -> Start | None:
        """The last start; None before the first."""
        return self.starts[-1] if self.starts else None

    @property
    def ended(self) -> Ended | None:
        """How the last start ended; None while it runs or before the first."""
        return self.starts[-1].ended if self.starts else None

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return bool(self.starts) and self.starts[-1].ended is None

    @property
    def is_over(self) -> bool:
        """Whether it has ended and is not started again."""
        return self.ended is not None and self.next_s is None

    @property
    def restarts(self) -> int:
        """How often it was started after the first time."""
        return max(0, len(self.starts) - 1)

    @property
    def is_looping(self) -> bool:
        """Whether its last starts have all failed before any probe of it succeeded."""
        last = self.starts[-_MOST_CRASHES:]
        return len(last) == _MOST_CRASHES and all(start.has_failed and not start.was_ready for start in last)

    def observe(self, sandbox: Sandbox, now: float) -> None:
        """See whether it still runs, and ask its probe where it is time to."""
        last = self.last
        if last is None or last.ended is not None:
            return
        last.ended = self._runtime.ended(last.name)
        if last.ended is not None:
            last.ended_s, self.is_ready = now, False
            last.words = self._last_words(last) if last.has_failed else ""
            said = f": {last.words}" if last.words else ""
            self._tell(f"ended with {last.ended.code} after {format_seconds(now - last.started_s)}{said}")
        elif not self.is_up:
            self.is_up = self._asked(sandbox, last, self.container.startup, now) is True
        elif self.container.readiness is None:
            self.is_ready = True
        else:
            self._probe(sandbox, last, self.container.readiness, now)

    def advance(self, sandbox: Sandbox, policy: Restart, now: float) -> None:
        """Start it where it is due, or decide whether it will be started again.

        Raises:
            ContainerConfigError: the kubelet would not make it.
        """
        last = self.last
        if last is not None and last.ended is not None and self.next_s is None:
            if not policy.applies(last.ended.code):
                return
            pause_s = min(FIRST_PAUSE_S * 2.0 ** (len(self.starts) - 1), LONGEST_PAUSE_S)
            self.next_s = (last.ended_s or now) + pause_s
        if self.next_s is not None and now >= self.next_s:
            self._start(sandbox, now)

    def signal(self, number: str) -> None:
        """Send it a signal where it runs."""
        if self.is_running:
            self._runtime.signal(self.starts[-1].name, number)

    def told(self) -> str:
        """How the last start that has ended did so, in words; they are not fit to be shown yet."""
        start = next((start for start in reversed(self.starts) if start.ended), None)
        ended = (start and start.ended) or Ended(0)
        why = f" ({ended.reason})" if ended.reason else ""
        said = f": {start.words}" if start and start.words else ""
        return f"{shown(self.container.name)} ended with {ended.code}{why}{said}"

    def _start(self, sandbox: Sandbox, now: float) -> None:
        self.next_s = None
        self._successes = self._failures = 0
        self.is_ready, self.is_up = False, self.container.startup is None
        self._probed_s = float("-inf")
        try:
            self.starts.append(Start(self._runtime.start(sandbox, self.container), now))
        except ContainerConfigError:
            raise
        except PreflightError as error:
            reason = _reason(error)
            self.starts.append(Start("", now, now, Ended(_NOT_STARTED, reason)))
            self._tell(f"cannot be started: {reason}")
            return
        self._tell(f"started again ({self.restarts})" if self.restarts else "started")

    def _probe(self, sandbox: Sandbox, last: Start, probe: Probe, now: float) -> None:
        answer = self._asked(sandbox, last, probe, now)
        if answer is None:
            return
        self._successes, self._failures = (self._successes + 1, 0) if answer else (0, self._failures + 1)
        if self._successes >= probe.successes:
            self.is_ready = last.was_ready = True
        elif self._failures >= probe.failures:
            self.is_ready = False

    def _asked(self, sandbox: Sandbox, last: Start, probe: Probe | None, now: float) -> bool | None:
        """Whether a probe succeeds; None where it is not yet time to ask."""
        if probe is None:
            return True
        period_s = min(probe.period_s, _PROBE_PERIOD_S)
        if now < last.started_s + probe.delay_s or now < self._probed_s + period_s:
            return None
        self._probed_s = now
        return self._runtime.answers(sandbox, last.name, probe)

    def _last_words(self, start: Start) -> str:
        lines = [line.strip() for line in self._runtime.tail(start.name, _LAST_LINES).splitlines()]
        return next((line for line in reversed(lines) if line), "")[:_LONGEST_WORDS]

    def _tell(self, text: str) -> None:
        self._say(f"{shown(self.container.name)} {text}")


def _reason(error: PreflightError) -> str:
    """Why a container could not be started: the engine tells first through which of its parts that came.

    All of what it said is with the error's own cause; the error has it cut, from the end that matters.
    """
    whole = getattr(error.__cause__, "explanation", None) or error.cause or error
    return str(whole).rpartition(_AFTER)[2]
