"""Pure: unwrapped data keys, kept in memory for LIFETIME_S so that a call need not unwrap its key again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

# Seconds. Bounds how long a data key stays in memory after its last unwrapping.
LIFETIME_S = 300.0


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """One data key of an organization as stored; safe to keep in a snapshot."""

    version: int
    key_id: str
    wrapped: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CacheKey:
    """The stored wrapping of a data key. A moved or altered row has another key and is unwrapped anew."""

    organization_id: UUID
    version: int
    key_id: str
    wrapped_sha256: bytes


class DataKeyCache:
    """Bounded by count and age; the oldest entries go first. Spec: D68"""

    __slots__ = ("_entries", "_lifetime_s", "_lock", "_max_entries", "_now")

    def __init__(
        self,
        *,
        max_entries: int,
        lifetime_s: float = LIFETIME_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._entries: dict[CacheKey, tuple[float, bytes]] = {}
        self._lock = threading.Lock()
        self._max_entries = max_entries
        self._lifetime_s = lifetime_s
        self._now = now

    def get(self, key: CacheKey) -> bytes | None:
        # Reads take no lock, because calls run on the event loop. Writes do: pages run in threads beside it.
        entry = self._entries.get(key)
        return entry[1] if entry is not None and entry[0] > self._now() else None

    def put(self, key: CacheKey, data_key: bytes) -> None:
        """Keep `data_key` for the cache's lifetime; drop expired entries."""
        now = self._now()
        with self._lock:
            # A key put again moves to the end: entries stay in the order in which they expire.
            self._entries.pop(key, None)
            self._entries[key] = (now + self._lifetime_s, data_key)
            while self._is_full_or_stale(now):
                del self._entries[next(iter(self._entries))]

    def forget(self, organization_id: UUID) -> None:
        with self._lock:
            for key in [key for key in self._entries if key.organization_id == organization_id]:
                del self._entries[key]

    def _is_full_or_stale(self, now: float) -> bool:
        if not self._entries:
            return False
        oldest_ends_at, _ = next(iter(self._entries.values()))
        return len(self._entries) > self._max_entries or oldest_ends_at <= now

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"DataKeyCache({len(self._entries)} entries)"
