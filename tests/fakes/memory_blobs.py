"""The blob store in a dictionary, with a clock that a test moves."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.coordination.blob_store import MAX_VALUE_BYTES
from gateway.coordination.store import CoordinationUnavailable


@dataclass
class MemoryBlobs:
    """Has the methods of BlobStore. While `is_away`, each of them fails."""

    now_s: float = 1_000_000.0
    is_away: bool = False
    asked: list[str] = field(default_factory=list)  # names of `get`
    max_value_bytes: int = MAX_VALUE_BYTES
    values: dict[str, tuple[bytes, float]] = field(default_factory=dict)  # value, end of its time

    async def get(self, name: str) -> bytes | None:
        self._check()
        self.asked.append(name)
        value, ends_s = self.values.get(name, (None, 0.0))
        return value if ends_s > self.now_s else None

    async def put(self, name: str, value: bytes, ttl_s: int) -> None:
        self._check()
        if len(value) <= self.max_value_bytes:
            self.values[name] = (value, self.now_s + ttl_s)

    async def size(self, name: str) -> int:
        self._check()
        value, ends_s = self.values.get(name, (b"", 0.0))
        return len(value) if ends_s > self.now_s else 0

    async def extend(self, name: str, ttl_s: int) -> bool:
        value = await self.get(name)
        if value is not None:
            await self.put(name, value, ttl_s)
        return value is not None

    async def claim(self, name: str, ttl_s: int) -> bool:
        if await self.get(name) is not None:
            return False
        await self.put(name, b"1", ttl_s)
        return True

    def of_kind(self, kind: str) -> dict[str, bytes]:
        return {name: value for name, (value, _) in self.values.items() if f":{kind}:" in name}

    def _check(self) -> None:
        if self.is_away:
            raise CoordinationUnavailable("away")
