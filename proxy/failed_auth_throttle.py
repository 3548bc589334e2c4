"""Throttle for addresses that keep sending invalid bearers: each look-up costs a thread and usually a database read."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime

from django.conf import settings

from gateway.coordination.store import Admission, CoordinationStore
from gateway.lib import clock
from gateway.lib.bounded import put_newest
from gateway.lib.client_address import address_key
from oauth_ext.bearer import RevokedBearer

# Throttled addresses in memory; the oldest is dropped first.
# Refusals count in the shared store. While an address's window is full, this process refuses unknown bearers from it
# without a look-up, unless the gateway signed them. Known callers pass: they may share the address with an attacker.
MAX_ADDRESSES = 10_000
MAX_REVOKED = 20_000  # about 3 MB


class AuthThrottled(Exception):
    """The address's window is full; `admission.retry_after_s` says until when."""

    def __init__(self, admission: Admission) -> None:
        super().__init__("too many bearers of this address were refused")
        self.admission = admission


class FailedAuthThrottle:
    """One event loop; `check` is safe from any thread."""

    def __init__(self, store: CoordinationStore, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._blocked_until_s: OrderedDict[str, float] = OrderedDict()

    def check(self, address: str) -> None:
        """Raises: AuthThrottled while unknown bearers of this address are refused. No I/O."""
        left_s = self._blocked_until_s.get(address_key(address), 0.0) - self._monotonic()
        if left_s > 0:
            raise AuthThrottled(Admission(settings.FAILED_AUTHS, False, 0, -int(-left_s // 1), None))

    async def count(self, address: str) -> None:
        """Raises: AuthThrottled when the address's window is full; CoordinationUnavailable. Spec: §8 · D20-D22"""
        key = address_key(address)
        admission = await self._store.admit(settings.FAILED_AUTHS, key, ())
        if admission.allowed:
            return
        put_newest(self._blocked_until_s, key, self._monotonic() + admission.retry_after_s, MAX_ADDRESSES)
        raise AuthThrottled(admission)


class RevokedTokens:
    """SHA-256 digests of the gateway's own tokens found revoked, until they expire. One event loop."""

    def __init__(self) -> None:
        # Revocation is final, so a second look-up is unnecessary. The oldest entry is dropped first.
        self._expires_at: OrderedDict[bytes, datetime] = OrderedDict()

    def check(self, digest: bytes) -> None:
        """Raises: RevokedBearer. No I/O."""
        expires_at = self._expires_at.get(digest)
        if expires_at is None:
            return
        if expires_at > clock.now():
            raise RevokedBearer(expires_at)
        del self._expires_at[digest]  # expired: the look-up reports it so

    def add(self, digest: bytes, found: RevokedBearer) -> None:
        put_newest(self._expires_at, digest, found.expires_at, MAX_REVOKED)
