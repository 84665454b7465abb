"""One token for the whole cluster: rank 0 asks for it, and the others have it from there, in memory.

Whatever there is to wait for, threads wait for it; messages travel when the main threads call MPI anyway.
"""

from __future__ import annotations

import json
import math
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from azure.core.exceptions import AzureError, ClientAuthenticationError

from azcp_runtime.azure.credential import IDENTITY, SAS, Secret, hidden, own_holder
from azcp_runtime.azure.holder import Holder
from azcp_runtime.mpi.ranks import Correspondence, Seat
from azcp_runtime.scrub import hide

_PATIENCE_S: Final = 240.0
"""The metadata service alone may be away for 70 s, and is then asked for a while."""

_PAUSE_S: Final = 10.0
_SHORTEST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 3600.0

Send = Callable[[bytes, int | None], None]
"""Sends a message to a rank, or to all others for None; takes no time."""


def hold(
    secret: Secret, value: str, left_s: float | None, seat: Seat, notes: Correspondence
) -> Holder | None:
    """Who renews the secret on this rank; on rank 0 also for all others.

    Args:
        secret: the credential.
        value: the token or SAS that every rank has.
        left_s: for how many seconds it is valid; None for one that is used until it is refused.
        seat: this rank.
        notes: to the other ranks.
    """
    hidden(secret)
    can_change = secret.kind == IDENTITY or (secret.kind == SAS and secret.file is not None)
    if seat.size == 1 or not can_change:
        return own_holder(secret)
    if seat.rank != 0:
        hide(value)
        relayed = Relayed(notes.send, value, math.inf if left_s is None else left_s)
        notes.listen(relayed.take)
        return relayed
    holder = own_holder(secret)
    if holder:
        keeper = Keeper(holder, notes.send, value)
        notes.listen(keeper.take)
        keeper.start()
    return holder


@dataclass(frozen=True, slots=True)
class _Wish:
    rank: int
    serial: int
    is_refused: bool
    tenant: str


class Keeper:
    """Rank 0's side: renews the secret in time or on a wish, and sends every new one to all ranks.

    Args:
        holder: where the secret comes from.
        send: to the other ranks.
        value: the secret that all ranks have already.
    """

    def __init__(self, holder: Holder, send: Send, value: str) -> None:
        self._holder = holder
        self._send = send
        self._value = value
        self._serial = 0
        self._wishes: queue.SimpleQueue[_Wish] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="keeper", daemon=True)

    def start(self) -> None:
        """Start the thread that waits."""
        self._thread.start()

    def take(self, message: bytes, rank: int) -> None:
        """A message of another rank."""
        wish = json.loads(message)
        self._wishes.put(_Wish(rank, wish["serial"], wish["refused"], wish["tenant"]))

    def _work(self) -> None:
        while True:
            wait_s = min(max(self._holder.renew_in_s(), _SHORTEST_WAIT_S), _LONGEST_WAIT_S)
            try:
                wish = self._wishes.get(timeout=wait_s)
            except queue.Empty:
                wish = None
            try:
                self._serve(wish)
            except AzureError as error:
                if wish:
                    self._deny(wish, str(error).strip().partition("\n")[0], has_failed=True)

    def _serve(self, wish: _Wish | None) -> None:
        if wish and wish.serial < self._serial:
            return  # its wish and the new one have crossed
        if wish and wish.is_refused:
            value = self._holder.another(self._value, wish.tenant)
        else:
            value = self._holder.current()
        if value != self._value:
            self._value = value
            self._serial += 1
            left_s = self._holder.left_s()
            news = {"serial": self._serial, "value": value, "left": None if math.isinf(left_s) else left_s}
            self._send(json.dumps(news).encode(), None)
        elif wish:
            self._deny(wish, "there is no other than the one that was refused", has_failed=False)

    def _deny(self, wish: _Wish, reason: str, *, has_failed: bool) -> None:
        answer = {"serial": self._serial, "no": reason, "failed": has_failed}
        self._send(json.dumps(answer).encode(), wish.rank)


class Relayed:
    """The side of every other rank: what rank 0 sent last, and the wish for more.

    Args:
        send: to the other ranks.
        value: the secret that came with the listing.
        left_s: for how many seconds it is valid; a clock of one's own may differ from rank 0's.
    """

    def __init__(self, send: Send, value: str, left_s: float) -> None:
        self._send = send
        self._value = value
        self._ends = time.monotonic() + left_s
        self._serial = 0
        self._asked = False
        self._no = ""
        self._has_failed = False
        self._vain_until = 0.0
        self._changed = threading.Condition()

    def take(self, message: bytes, _rank: int) -> None:
        """A message of rank 0."""
        news = json.loads(message)
        with self._changed:
            self._asked = False
            if "no" in news:
                self._no, self._has_failed = news["no"], news["failed"]
                self._vain_until = time.monotonic() + _PAUSE_S
            elif news["serial"] > self._serial:
                hide(news["value"])
                self._serial, self._value = news["serial"], news["value"]
                self._ends = time.monotonic() + (math.inf if news["left"] is None else news["left"])
                self._vain_until = 0.0
            self._changed.notify_all()

    def current(self) -> str:
        """The secret; raises AzureError where it has ended and rank 0 has no other."""
        if time.monotonic() < self._ends:
            return self._value
        with self._changed:
            serial = self._serial
            self._wish(serial, is_refused=False, tenant="")
            if self._serial == serial and time.monotonic() >= self._ends:
                raise ClientAuthenticationError(self._no)
            return self._value

    def another(self, refused: str, tenant: str = "") -> str:
        """Another secret than the refused one, or that again where there is no other.

        Raises:
            ClientAuthenticationError: rank 0 could not get one.
        """
        with self._changed:
            if self._value == refused:
                self._wish(self._serial, is_refused=True, tenant=tenant)
            if self._value == refused and self._has_failed:
                raise ClientAuthenticationError(self._no)
            return self._value

    def left_s(self) -> float:
        """For how many seconds it is valid."""
        return self._ends - time.monotonic()

    def renew_in_s(self) -> float:
        """Rank 0 does that."""
        return math.inf

    def _wish(self, serial: int, *, is_refused: bool, tenant: str) -> None:
        """Return once rank 0 has answered: one wish for all threads of this rank."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._serial == serial and time.monotonic() >= self._vain_until:
            if not self._asked:
                self._asked = True
                wish = {"serial": serial, "refused": is_refused, "tenant": tenant}
                self._send(json.dumps(wish).encode(), 0)
            self._changed.wait(_SHORTEST_WAIT_S)
            if time.monotonic() > deadline:
                raise ClientAuthenticationError(f"rank 0 has not answered for {_PATIENCE_S:.0f} s")
