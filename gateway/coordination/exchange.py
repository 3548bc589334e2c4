"""Values and messages that processes hand to each other for minutes. All of it may be lost at any time.

With Redis: keys and lists of it. Without: a SQLite file of the host. Names and contents are the caller's: sealed.
docs/decisions/0110
"""

from __future__ import annotations

from typing import Protocol

MAX_TAKEN = 100  # messages at once


class Exchange(Protocol):
    """One event loop. Each method raises CoordinationUnavailable."""

    async def get(self, name: str) -> bytes | None:
        """The value, unless it has expired."""
        ...

    async def put(self, name: str, value: bytes, ttl_s: int) -> None: ...

    async def claim(self, name: str, ttl_s: int) -> bool:
        """True for the first of all processes, until `ttl_s` are over."""
        ...

    async def push(self, box: str, message: bytes, ttl_s: int) -> None:
        """Add a message to a box, which is kept for `ttl_s` from now."""
        ...

    async def take(self, box: str, wait_s: float) -> list[bytes]:
        """Remove and return the messages of a box, the oldest first; [] after `wait_s` without one."""
        ...

    def close(self) -> None: ...
