"""Each try of a request passes the rank's gate, and the gate learns how the account answered."""

from __future__ import annotations

from typing import Any, Final

from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import HTTPPolicy

from azcp_runtime.engine.gate import Gate

THROTTLED: Final = {503: "503", 429: "429"}
"""What the account answers when it is asked too often, and how the summary calls it."""

_DELIVERED: Final = (200, 206)


class GatePolicy(HTTPPolicy[Any, Any]):
    """Stands behind the retries, so that each of them waits its turn like a first try.

    A request that waits for its Retry-After is outside and takes no other's place.
    """

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    def send(self, request: PipelineRequest[Any]) -> PipelineResponse[Any, Any]:
        """Wait at the gate, send, and tell it the outcome."""
        sink = request.context.options["sink"]
        self._gate.enter(sink.end - sink.start)
        accepted = None
        try:
            response: PipelineResponse[Any, Any] = self.next.send(request)
            status = response.http_response.status_code
            accepted = True if status in _DELIVERED else False if status in THROTTLED else None
            return response
        finally:
            self._gate.leave(accepted=accepted)
