"""What a vendor says during one call, on its way to the caller: a few notifications wait, and then the vendor does."""

from __future__ import annotations

import asyncio
from collections import deque

from proxy.protocol import progress
from proxy.protocol.progress import ProgressToken
from proxy.protocol.replies import VendorNotification

MOST_WAITING = 16  # of 64 KiB at most


class ProgressRelay:
    """One producer, the call; one consumer, the answer. `token` is the caller's. One event loop.   Spec: D110"""

    def __init__(self, token: ProgressToken) -> None:
        self._token = token
        self._waiting: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """The caller has left: what comes now is for nobody."""
        return self._is_closed

    @property
    def has_waiting(self) -> bool:
        """Whether `take` would return a notification."""
        return bool(self._waiting)

    async def put(self, notification: VendorNotification, sent: ProgressToken, *, deadline: float) -> None:
        """Take in what the vendor says of this call: progress about the token `sent`, and log messages.

        Waits while the caller does not read.   Raises: TimeoutError at `deadline`, in the loop's time.
        """
        message = progress.relayed(notification, sent, self._token)
        if message is None:
            return
        if len(self._waiting) >= MOST_WAITING and not self._is_closed:
            self._room.clear()
            async with asyncio.timeout_at(deadline):
                await self._room.wait()
        if not self._is_closed:
            self._waiting.append(message)
            self._news.set()

    def take(self) -> bytes | None:
        """The notification that waited for longest, or None."""
        message = self._waiting.popleft() if self._waiting else None
        self._room.set()
        return message

    async def changed(self, within_s: float | None = None) -> bool:
        """Back when there is something to take, or `wake` was called; False if neither happened within the time."""
        try:
            async with asyncio.timeout(within_s):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True

    def wake(self) -> None:
        """Let the consumer look: the call is over."""
        self._news.set()

    def close(self) -> None:
        """The caller has left: nothing is kept, and the vendor waits for nobody."""
        self._is_closed = True
        self._waiting.clear()
        self._room.set()
