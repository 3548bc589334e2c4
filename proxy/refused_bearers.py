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
from datetime import datetime

from django.conf import settings

from gateway.coordination.store import Admission, CoordinationStore
from gateway.lib import clock
from gateway.lib.client_address import address_key
from oauth_ext.bearer import RevokedBearer

MAX_ADDRESSES = 10_000
MAX_REVOKED = 20_000  # some 3 MB


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


class RevokedTokens:
    """Access tokens of ours that were found revoked, by SHA-256, until they expire. One event loop.

    Their rows are gone for good and need no second look. Bounded: the one found longest ago is forgotten first.
    """

    def __init__(self) -> None:
        self._expires_at: OrderedDict[bytes, datetime] = OrderedDict()

    def check(self, digest: bytes) -> None:
        """Return if the token may be looked up. No I/O.

        Raises: RevokedBearer.
        """
        expires_at = self._expires_at.get(digest)
        if expires_at is None:
            return
        if expires_at > clock.now():
            raise RevokedBearer(expires_at)
        del self._expires_at[digest]  # the look-up says that it has expired

    def remember(self, digest: bytes, found: RevokedBearer) -> None:
        """The token was found revoked."""
        self._expires_at[digest] = found.expires_at
        if len(self._expires_at) > MAX_REVOKED:
            self._expires_at.popitem(last=False)
