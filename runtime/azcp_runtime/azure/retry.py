"""When a range is asked for again, and after how long: azure-core's decisions, our waiting."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.core.pipeline import PipelineContext, PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import RetryPolicy
from azure.storage.blob import ExponentialRetry

from azcp_runtime.azure.passage import THROTTLED
from azcp_runtime.engine.gate import Gate

_BACKOFF_FIRST_S: Final = 0.5
_BACKOFF_LONGEST_S: Final = 30.0
_LONGEST_AFTER_S: Final = 86_400.0
_PARSER: Final = RetryPolicy[Any, Any]()


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """When a request is given up: tries and seconds without a byte of progress."""

    max_retries: int
    retry_time_s: float


class Retries:
    """Counts of retries by class, for the cluster's one summary line; shared by a rank's threads."""

    CLASSES: Final = ("503", "429", "5xx", "transport")

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, status: int | None) -> None:
        """One more retry after this status, or after a broken exchange where it is None."""
        name = "transport" if status is None else THROTTLED.get(status, "5xx")
        with self._lock:
            self._counts[name] += 1

    def counts(self) -> list[int]:
        """The counts in the order of CLASSES."""
        with self._lock:
            return [self._counts[name] for name in self.CLASSES]


class BodyRetryPolicy(RetryPolicy[Any, Any]):
    """azure-core's retry policy with full jitter, a time budget, and a count that progress resets.

    A body cut at 15 of 16 MiB is not a failure of the whole range: what arrived stays, the range
    header is moved on by the policy behind this one, and the budget starts anew. It does so too when
    an account that throttles has meanwhile served this rank or another: it lives, and only asks to be
    asked less often, which the gate sees to.

    Args:
        limits: tries after the first and seconds, both without a byte of progress.
        retries: where each retry is counted.
        gate: of the rank; what waits for another try does so there, and is not taken for stuck.
        arrived: a number that grows when the account serves this rank or another.
    """

    def __init__(self, limits: RetryLimits, retries: Retries, gate: Gate, arrived: Callable[[], int]) -> None:
        super().__init__(
            retry_total=limits.max_retries,
            retry_connect=limits.max_retries,
            retry_read=limits.max_retries,
            retry_status=limits.max_retries,
            retry_backoff_factor=_BACKOFF_FIRST_S,
            retry_backoff_max=_BACKOFF_LONGEST_S,
        )
        self._retry_time_s = limits.retry_time_s
        self._retries = retries
        self._gate = gate
        self._arrived = arrived

    def configure_retries(self, options: dict[str, Any]) -> dict[str, Any]:
        """The state of one range's retries."""
        sink = options["sink"]
        settings = super().configure_retries(options)
        settings.update(sink=sink, seen=sink.filled, arrived=self._arrived(), since=time.monotonic())
        return settings

    def increment(
        self,
        settings: dict[str, Any],
        response: PipelineRequest[Any] | PipelineResponse[Any, Any] | None = None,
        error: Exception | None = None,
    ) -> bool:
        """Whether there is another try; progress since the last one starts the count again."""
        status, after = None, 0.0
        if isinstance(response, PipelineResponse):
            status = response.http_response.status_code
            after = self.get_retry_after(response) or 0.0
        self._refill(settings, status)
        self._retries.count(status)
        in_time = time.monotonic() + after - settings["since"] < self._retry_time_s
        return bool(super().increment(settings, response=response, error=error)) and in_time

    def _refill(self, settings: dict[str, Any], status: int | None) -> None:
        """Start the count and the time again where there was progress since the last try."""
        filled, arrived = settings["sink"].filled, self._arrived()
        if filled > settings["seen"] or (status in THROTTLED and arrived > settings["arrived"]):
            for name in ("total", "connect", "read", "status"):
                settings[name] = self.total_retries
            settings["history"].clear()
            settings["since"] = time.monotonic()
        settings.update(seen=filled, arrived=arrived)

    def get_retry_after(self, response: PipelineResponse[Any, Any]) -> float | None:
        """Seconds of a Retry-After header; None where there is none, or none that makes sense."""
        return retry_after_s(response)

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
        if not self._gate.pause(after + min(1.0, backoff) if after else backoff):
            raise AzureError("the run has ended")


def retry_after_s(response: PipelineResponse[Any, Any]) -> float | None:
    """Seconds of a Retry-After header; None where there is none, or none that makes sense."""
    try:
        after = _PARSER.get_retry_after(response)
    except (ValueError, TypeError, OverflowError):  # azure-core parses what the server sent as it is
        return None
    return after if after is not None and 0 <= after < _LONGEST_AFTER_S else None


class ListRetryPolicy(ExponentialRetry):
    """azure-storage-blob's policy for the listing: sooner than its first 15 s, and not for ever.

    A throttled account is asked again as often as a range would be; a host that cannot be reached
    only a few times, for it is most often misspelt; an untrusted certificate or an identity that
    gets no token not at all.
    """

    _UNREACHED: Final = 3

    def __init__(self, limits: RetryLimits) -> None:
        few = min(self._UNREACHED, limits.max_retries)
        super().__init__(
            initial_backoff=1,
            increment_base=2,
            retry_total=limits.max_retries,
            random_jitter_range=1,
            retry_connect=few,
            retry_read=few,
            retry_status=limits.max_retries,
        )
        self._retry_time_s = limits.retry_time_s

    def configure_retries(self, request: PipelineRequest[Any]) -> dict[str, Any]:
        """The state of one request's retries."""
        return super().configure_retries(request) | {"since": time.monotonic(), "after": 0.0}

    def get_backoff_time(self, settings: dict[str, Any]) -> float:
        """Seconds to wait: the exponential backoff, or Retry-After where that is longer."""
        after: float = settings["after"]
        return max(after, super().get_backoff_time(settings))

    def increment(
        self,
        settings: dict[str, Any],
        request: PipelineRequest[Any],
        response: PipelineResponse[Any, Any] | None = None,
        error: AzureError | None = None,
    ) -> bool:
        """Whether there is another try."""
        if isinstance(error, ClientAuthenticationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return False
        settings["after"] = _after_s(request, response)
        wait_s = max(self._next_wait_s(settings), settings["after"])
        in_time = time.monotonic() + wait_s - settings["since"] < self._retry_time_s
        return bool(super().increment(settings, request, response, error)) and in_time

    def _next_wait_s(self, settings: dict[str, Any]) -> float:
        return self.initial_backoff + float(self.increment_base ** settings["count"])


def _after_s(request: object, response: object) -> float:
    # The listing's policy is given the bare response, azure-core's parser wants it with its request.
    pair: Any = PipelineResponse(request, response, cast("PipelineContext", None))
    return (retry_after_s(pair) or 0.0) if response else 0.0
