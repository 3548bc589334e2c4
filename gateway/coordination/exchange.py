"""Values and messages that processes hand to each other for minutes. All of it may be lost at any time.

With Redis: keys and lists of it. Without: a SQLite file of the host. Names and contents are the caller's: sealed.
docs/decisions/0110
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

MAX_TAKEN = 100  # messages at once
MARK_BYTES = 8
LOG_ENTRIES = 10_000  # of one log, the newest


@dataclass(frozen=True, slots=True)
class Table:
    """A table of fields. `most`: of its fields. `shares`: beginnings of its name, and the most fields of all tables
    with names that begin so. All of these names have one hash tag."""

    name: str
    most: int
    shares: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Fields:
    """`mark`: of the table since its first field, other for one that was lost and filled again; b"": there is none."""

    mark: bytes = b""
    values: dict[bytes, bytes] = field(default_factory=dict)


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

    async def set_field(self, table: Table, field: bytes, value: bytes, *, ttl_s: int) -> str:
        """Set one field of a table, which is kept for `ttl_s` from now. "", or without a change the name whose bound is
        reached: of the table or of a share. `field` is not empty."""
        ...

    async def remove_field(self, table: Table, field: bytes) -> None: ...

    async def fields(self, table: Table, *, ttl_s: int) -> Fields:
        """All fields of a table, which is kept for `ttl_s` from now if it has one."""
        ...

    async def drop(self, table: Table) -> None:
        """Remove the table with its fields."""
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
