"""How one pod fares: its containers in their order, from its making to its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from azcp_kit.rehearse.environment import ContainerConfigError
from azcp_kit.rehearse.pod import Pod, Restart
from azcp_kit.rehearse.runtime import Runtime, Sandbox
from azcp_kit.rehearse.trial import Trial

Tell = Callable[[str, str], None]
"""Told of each step: the pod, and what has happened to it, with its own words as they are."""


class Phase(Enum):
    """Where a pod is in its life."""

    WAITING = "waiting"
    STARTING = "init containers"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self in (Phase.SUCCEEDED, Phase.FAILED, Phase.STOPPED)


class Fate:
    """A pod; `step` is called again and again until its phase is over.

    One that holds its main containers back has come up when its init containers are done.
    """

    def __init__(self, pod: Pod, runtime: Runtime, tell: Tell, *, holds_main: bool = False) -> None:
        self.pod = pod
        self.holds_main = holds_main
        self.phase = Phase.WAITING
        self.reason = ""
        self.sandbox: Sandbox | None = None
        self.opened_s = 0.0
        self.ready_s: float | None = None
        self.ended_s: float | None = None
        self.init = [Trial(container, runtime, self._say) for container in pod.init]
        self.main = [Trial(container, runtime, self._say) for container in pod.main]
        self._runtime = runtime
        self._tell = tell

    @property
    def trials(self) -> list[Trial]:
        """All of its containers."""
        return [*self.init, *self.main]

    @property
    def sidecars(self) -> list[Trial]:
        """The init containers that go on beside the main ones."""
        return [trial for trial in self.init if trial.container.is_sidecar]

    @property
    def restarts(self) -> int:
        """Of all containers together."""
        return sum(trial.restarts for trial in self.trials)

    @property
    def looping(self) -> Trial | None:
        """The container that fails at every start."""
        return next((trial for trial in self.trials if trial.is_looping), None)

    @property
    def was_ready(self) -> bool:
        """Whether a probe has ever told so: without one, a container counts as ready while it is failing."""
        return self.ready_s is not None and any(s.was_ready for trial in self.trials for s in trial.starts)

    @property
    def trouble(self) -> str:
        """The last that went wrong in it."""
        failed = [
            (start.ended_s or 0.0, trial.told())
            for trial in self.trials
            for start in trial.starts
            if start.has_failed
        ]
        return self.reason or max(failed, default=(0.0, ""))[1]

    @property
    def is_ready(self) -> bool:
        """Whether every container that should run is ready."""
        serving = [*self.sidecars, *([] if self.holds_main else self.main)]
        return self.phase is Phase.RUNNING and all(trial.is_ready for trial in serving)

    def open(self, names: tuple[str, ...], resolved: Mapping[str, tuple[str, ...]], now: float) -> None:
        """Put the pod on its node."""
        self._say(f"made on {self.pod.identity.node}")
        self.sandbox = self._runtime.open(self.pod, names, resolved)
        self.phase, self.opened_s = Phase.STARTING, now

    def step(self, now: float) -> None:
        """Let happen what is due."""
        if self.sandbox is None or self.phase.is_over:
            return
        try:
            self._step(self.sandbox, now)
        except ContainerConfigError as error:
            self.stop(Phase.FAILED, f"CreateContainerConfigError: {error}", now)
        if self.pod.deadline_s is not None and now - self.opened_s > self.pod.deadline_s:
            self.stop(Phase.FAILED, f"DeadlineExceeded after {self.pod.deadline_s} s", now)

    def stop(self, phase: Phase, reason: str, now: float) -> None:
        """Ask what still runs to end; the pod counts as ended."""
        if not self.phase.is_over:
            self.signal("SIGTERM")
            self._end(phase, reason, now)

    def signal(self, number: str) -> None:
        """To every container that runs."""
        for trial in self.trials:
            trial.signal(number)

    def _step(self, sandbox: Sandbox, now: float) -> None:
        for trial in self.trials:
            trial.observe(sandbox, now)
        if self.phase is Phase.STARTING:
            self._step_init(sandbox, now)
        if self.phase is Phase.RUNNING:
            self._step_main(sandbox, now)

    def _step_init(self, sandbox: Sandbox, now: float) -> None:
        once = Restart.NEVER if self.pod.restart is Restart.NEVER else Restart.ON_FAILURE
        for trial in self.init:
            is_sidecar = trial.container.is_sidecar
            trial.advance(sandbox, Restart.ALWAYS if is_sidecar else once, now)
            if is_sidecar and trial.is_running and trial.is_up:
                continue
            if is_sidecar or not trial.is_over:
                return
            if trial.ended is not None and trial.ended.code:
                self.stop(Phase.FAILED, f"init container {trial.told()}", now)
                return
        self.phase = Phase.RUNNING
        if self.init:
            self._say("init containers done")

    def _step_main(self, sandbox: Sandbox, now: float) -> None:
        for trial in self.sidecars:
            trial.advance(sandbox, Restart.ALWAYS, now)
        for trial in [] if self.holds_main else self.main:
            trial.advance(sandbox, self.pod.restart, now)
        if self.is_ready and self.ready_s is None:
            self.ready_s = now
            self._say("ready")
        if all(trial.is_over for trial in self.main):
            failed = [trial for trial in self.main if trial.ended is not None and trial.ended.code]
            phase = Phase.FAILED if failed else Phase.SUCCEEDED
            # The sidecars are still there, and are told to end.
            self.stop(phase, "; ".join(trial.told() for trial in failed), now)

    def _end(self, phase: Phase, reason: str, now: float) -> None:
        self.phase, self.reason, self.ended_s = phase, reason, now
        self._say(f"{phase.value}: {reason}" if reason else phase.value)

    def _say(self, text: str) -> None:
        self._tell(self.pod.identity.title, text)
