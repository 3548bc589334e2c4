"""Bounded queue of a vendor's notifications and questions during one call. A full queue makes the vendor wait."""

from __future__ import annotations

import asyncio
from collections import deque

from proxy.protocol import progress
from proxy.protocol.progress import ProgressToken, Wanted
from proxy.protocol.replies import VendorNotification

MAX_PENDING = 16  # notifications of at most 64 KiB each, and one question


class ProgressRelay:
    """One producer (the call), one consumer (the response), one event loop. Spec: D110"""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._pending: deque[bytes] = deque()
        self._has_changed = asyncio.Event()
        self._has_space = asyncio.Event()
        self._is_closed = False
        self.chosen_log_level: str | None = None  # of a caller that chose one for its session

    @property
    def is_closed(self) -> bool:
        # The client disconnected; further notifications are dropped.
        return self._is_closed

    @property
    def wants_progress(self) -> bool:
        return self._wanted.token is not None

    @property
    def asked_log_level(self) -> str | None:
        return self._wanted.log_level

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    async def put(self, notification: VendorNotification, sent: ProgressToken, *, deadline: float) -> None:
        """Queue progress about the token `sent`, and log messages. Raises: TimeoutError at `deadline` (loop time)."""
        message = progress.relayed(notification, sent, self._wanted)
        if message is None:
            return
        # A full queue blocks until the caller reads.
        if len(self._pending) >= MAX_PENDING and not self._is_closed:
            async with asyncio.timeout_at(deadline):
                await self._space()
        self.send_now(message)

    async def send(self, message: bytes) -> None:
        """Queue a message of the gateway's own, once there is room for it."""
        while len(self._pending) >= MAX_PENDING and not self._is_closed:
            await self._space()
        self.send_now(message)

    def send_now(self, message: bytes) -> None:
        """Queue a message, also past the bound. Dropped if the client has left."""
        if not self._is_closed:
            self._pending.append(message)
            self._has_changed.set()

    def want_logs(self, level: str) -> None:
        """Let log messages of at least this level pass: the caller's session says so."""
        self._wanted, self.chosen_log_level = Wanted(self._wanted.token, level), level

    async def _space(self) -> None:
        self._has_space.clear()
        await self._has_space.wait()

    def pop(self) -> bytes | None:
        # The oldest notification first.
        message = self._pending.popleft() if self._pending else None
        self._has_space.set()
        return message

    async def wait_changed(self, timeout_s: float | None = None) -> bool:
        """True once a notification is queued or `notify` was called; False after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._has_changed.wait()
        except TimeoutError:
            return False
        self._has_changed.clear()
        return True

    def notify(self) -> None:
        """Wake the consumer: the call is over."""
        self._has_changed.set()

    def close(self) -> None:
        """The client disconnected: drop the queue and never block the vendor again."""
        self._is_closed = True
        self._pending.clear()
        self._has_space.set()
