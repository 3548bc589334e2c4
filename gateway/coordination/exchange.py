"""Values and messages that processes hand to each other for minutes. All of it may be lost at any time.

With Redis: keys and lists of it. Without: a SQLite file of the host. Names and contents are the caller's: sealed.
docs/decisions/0110
"""

from __future__ import annotations

from typing import Protocol

MAX_TAKEN = 100  # messages at once
LOG_ENTRIES = 10_000  # of one log, the newest


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

    async def set_field(self, name: str, field: bytes, value: bytes, *, ttl_s: int, most: int) -> bool:
        """Set one field of a table, which is kept for `ttl_s` from now. False, and no change, past `most` fields."""
        ...

    async def remove_field(self, name: str, field: bytes) -> None: ...

    async def fields(self, name: str, *, ttl_s: int) -> dict[bytes, bytes]:
        """All fields of a table, which is kept for `ttl_s` from now."""
        ...

    async def append(self, log: str, entry: bytes, ttl_s: int) -> None:
        """Add an entry to a log, which any number of processes read. It is kept for `ttl_s` at least."""
        ...

    async def end_of(self, log: str) -> str:
        """The place behind the last entry."""
        ...

    async def read_after(self, log: str, place: str, wait_s: float) -> tuple[str, list[bytes]]:
        """The entries after a place, the oldest first, and the place behind them; [] after `wait_s` without one."""
        ...

    def close(self) -> None: ...
