"""Values in Redis that may be lost at any time, on a connection of their own: a large one delays no admission."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

import structlog

from gateway.coordination import resp
from gateway.coordination.pipelined_redis import PipelinedRedis
from gateway.coordination.redis_faults import described
from gateway.coordination.resp import ErrorReply
from gateway.coordination.store import CoordinationUnavailable

log = structlog.get_logger(__name__)
MAX_VALUE_BYTES = 900 * 1024  # below the largest reply of a pipelined connection
TIMEOUT_S = 0.25
PAUSE_S = 5.0  # after a failure, in which nothing is asked


class BlobStore:
    """One event loop. Each command has one key. All methods raise CoordinationUnavailable."""

    max_value_bytes = MAX_VALUE_BYTES

    def __init__(
        self,
        url: str,
        prefix: str,
        *,
        timeout_s: float = TIMEOUT_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._redis = PipelinedRedis(url, timeout_s=timeout_s)
        self._prefix = prefix
        self._monotonic = monotonic
        self._paused_until_s = 0.0

    async def get(self, name: str) -> bytes | None:
        return cast("bytes | None", await self._execute("GET", self._key(name)))

    async def size(self, name: str) -> int:
        """0 without a value."""
        return cast("int", await self._execute("STRLEN", self._key(name)))

    async def put(self, name: str, value: bytes, ttl_s: int) -> None:
        """A value of more than `max_value_bytes` is not stored."""
        if len(value) <= self.max_value_bytes:
            await self._execute("SET", self._key(name), value, "EX", ttl_s)

    async def extend(self, name: str, ttl_s: int) -> bool:
        """Keep a value for `ttl_s` from now; False without one."""
        return await self._execute("EXPIRE", self._key(name), ttl_s) == 1

    async def claim(self, name: str, ttl_s: int) -> bool:
        """Whether the name was free. It is this process's for `ttl_s` from now."""
        return await self._execute("SET", self._key(name), b"1", "EX", ttl_s, "NX") is not None

    def close(self) -> None:
        self._redis.close()

    def _key(self, name: str) -> str:
        return f"{self._prefix}{name}"

    async def _execute(self, *parts: str | bytes | int) -> object:
        if self._monotonic() < self._paused_until_s:
            raise CoordinationUnavailable("paused")
        try:
            return await self._redis.execute(resp.command(*parts))
        except (ErrorReply, OSError) as fault:
            self._paused_until_s = self._monotonic() + PAUSE_S
            log.info("blob store unavailable", fault=described(fault))
            raise CoordinationUnavailable(described(fault)) from fault
