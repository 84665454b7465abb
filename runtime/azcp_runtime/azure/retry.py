"""When a range is asked for again, and after how long: azure-core's decisions, our waiting."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any, Final

from azure.core.exceptions import AzureError
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import RetryPolicy

_BACKOFF_FIRST_S: Final = 0.5
_BACKOFF_LONGEST_S: Final = 30.0
_LONGEST_AFTER_S: Final = 86_400.0
_THROTTLED: Final = {503: "503", 429: "429"}


class Retries:
    """Counts of retries by class, for the cluster's one summary line; shared by a rank's threads."""

    CLASSES: Final = ("503", "429", "5xx", "transport")

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, status: int | None) -> None:
        """One more retry after this status, or after a broken exchange where it is None."""
        name = "transport" if status is None else _THROTTLED.get(status, "5xx")
        with self._lock:
            self._counts[name] += 1

    def counts(self) -> list[int]:
        """The counts in the order of CLASSES."""
        with self._lock:
            return [self._counts[name] for name in self.CLASSES]


class BodyRetryPolicy(RetryPolicy[Any, Any]):
    """azure-core's retry policy with full jitter, a time budget, and a count that progress resets.

    A body cut at 15 of 16 MiB is not a failure of the whole range: what arrived stays, the range
    header is moved on by the policy behind this one, and the budget starts anew.

    Args:
        max_retries: tries in a row without a byte of progress, after the first.
        retry_time_s: seconds without a byte of progress after which there is no further try.
        retries: where each retry is counted.
        stop: set when the run is over; ends a wait at once.
    """

    def __init__(
        self, max_retries: int, retry_time_s: float, retries: Retries, stop: threading.Event
    ) -> None:
        super().__init__(
            retry_total=max_retries,
            retry_connect=max_retries,
            retry_read=max_retries,
            retry_status=max_retries,
            retry_backoff_factor=_BACKOFF_FIRST_S,
            retry_backoff_max=_BACKOFF_LONGEST_S,
        )
        self._retry_time_s = retry_time_s
        self._retries = retries
        self._stop = stop

    def configure_retries(self, options: dict[str, Any]) -> dict[str, Any]:
        """The state of one range's retries."""
        sink = options["sink"]
        settings = super().configure_retries(options)
        settings.update(sink=sink, seen=sink.filled, since=time.monotonic())
        return settings

    def increment(
        self,
        settings: dict[str, Any],
        response: PipelineRequest[Any] | PipelineResponse[Any, Any] | None = None,
        error: Exception | None = None,
    ) -> bool:
        """Whether there is another try; progress since the last one starts the count again."""
        sink = settings["sink"]
        if sink.filled > settings["seen"]:
            for name in ("total", "connect", "read", "status"):
                settings[name] = self.total_retries
            settings["history"].clear()
            settings.update(seen=sink.filled, since=time.monotonic())
        status, after = None, 0.0
        if isinstance(response, PipelineResponse):
            status = response.http_response.status_code
            after = self.get_retry_after(response) or 0.0
        self._retries.count(status)
        in_time = time.monotonic() + after - settings["since"] < self._retry_time_s
        return bool(super().increment(settings, response=response, error=error)) and in_time

    def get_retry_after(self, response: PipelineResponse[Any, Any]) -> float | None:
        """Seconds of a Retry-After header; None where there is none, or none that makes sense."""
        try:
            after = super().get_retry_after(response)
        except (ValueError, TypeError, OverflowError):  # azure-core parses what the server sent as it is
            return None
        return after if after is not None and 0 <= after < _LONGEST_AFTER_S else None

    def get_backoff_time(self, settings: dict[str, Any]) -> float:
        """Seconds to wait: anywhere up to the exponential bound, so that ranks do not return in step."""
        tries = len(settings["history"])
        bound = min(_BACKOFF_LONGEST_S, _BACKOFF_FIRST_S * 2 ** max(0, tries - 1))
        return random.uniform(0, bound)

    def sleep(
        self,
        settings: dict[str, Any],
        transport: object,  # noqa: ARG002 - the base class would sleep through it; our wait can be ended
        response: PipelineResponse[Any, Any] | None = None,
    ) -> None:
        """Wait for Retry-After where it was given (plus jitter), else for the backoff."""
        after = self.get_retry_after(response) if response else None
        backoff = self.get_backoff_time(settings)
        self._stop.wait(after + min(1.0, backoff) if after else backoff)
        if self._stop.is_set():
            raise AzureError("the run has ended")
