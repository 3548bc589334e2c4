"""Bounded queue of a vendor's notifications during one call. A full queue makes the vendor wait."""

from __future__ import annotations

import asyncio
from collections import deque

from proxy.protocol import progress
from proxy.protocol.progress import ProgressToken
from proxy.protocol.replies import VendorNotification

MOST_WAITING = 16  # notifications of at most 64 KiB each


class ProgressRelay:
    """One producer (the call), one consumer (the response), one event loop. `token` is the caller's. Spec: D110"""

    def __init__(self, token: ProgressToken) -> None:
        self._token = token
        self._waiting: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        # The client disconnected; further notifications are dropped.
        return self._is_closed

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    async def put(self, notification: VendorNotification, sent: ProgressToken, *, deadline: float) -> None:
        """Queue progress about the token `sent`, and log messages. Raises: TimeoutError at `deadline` (loop time)."""
        message = progress.relayed(notification, sent, self._token)
        if message is None:
            return
        # A full queue blocks until the caller reads.
        if len(self._waiting) >= MOST_WAITING and not self._is_closed:
            self._room.clear()
            async with asyncio.timeout_at(deadline):
                await self._room.wait()
        if not self._is_closed:
            self._waiting.append(message)
            self._news.set()

    def take(self) -> bytes | None:
        # The oldest notification first.
        message = self._waiting.popleft() if self._waiting else None
        self._room.set()
        return message

    async def changed(self, within_s: float | None = None) -> bool:
        """True once a notification is queued or `wake` was called; False after `within_s`."""
        try:
            async with asyncio.timeout(within_s):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True

    def wake(self) -> None:
        """Wake the consumer: the call is over."""
        self._news.set()

    def close(self) -> None:
        """The client disconnected: drop the queue and never block the vendor again."""
        self._is_closed = True
        self._waiting.clear()
        self._room.set()
