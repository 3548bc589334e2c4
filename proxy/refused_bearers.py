"""Addresses that keep presenting bearers nobody is behind.

Telling that nobody is costs a thread and most often a read of the database, and anybody can ask for it. Refusals are
counted for the address in the shared store; when its window is full, this process remembers until when, and bearers it
does not know are refused unread, unless they carry our signature. Callers it knows are not held up either: they may
share the address with whoever guesses.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from django.conf import settings

from gateway.coordination.store import Admission, CoordinationStore
from gateway.lib.client_address import address_key

MAX_ADDRESSES = 10_000


class RefusedTooOften(Exception):
    """The address presented too many; `admission` says until when it is not heard."""

    def __init__(self, admission: Admission) -> None:
        super().__init__("too many bearers of this address were refused")
        self.admission = admission


class RefusedBearers:
    """Bounded: the address heard of longest ago is forgotten first. One event loop; `check` from any thread."""

    def __init__(self, store: CoordinationStore, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._until_s: OrderedDict[str, float] = OrderedDict()

    def check(self, address: str) -> None:
        """Return if an unknown bearer of this address may be looked up. No I/O.

        Raises: RefusedTooOften.
        """
        left_s = self._until_s.get(address_key(address), 0.0) - self._monotonic()
        if left_s > 0:
            raise RefusedTooOften(Admission(settings.REFUSED_BEARERS, False, 0, -int(-left_s // 1), None))

    async def count(self, address: str) -> None:
        """One more bearer of this address was refused.

        Raises: RefusedTooOften when its window was full already; CoordinationUnavailable.   Spec: §8 · D20-D22
        """
        key = address_key(address)
        admission = await self._store.admit(settings.REFUSED_BEARERS, key, ())
        if admission.allowed:
            return
        self._until_s[key] = self._monotonic() + admission.retry_after_s
        self._until_s.move_to_end(key)
        if len(self._until_s) > MAX_ADDRESSES:
            self._until_s.popitem(last=False)
        raise RefusedTooOften(admission)
