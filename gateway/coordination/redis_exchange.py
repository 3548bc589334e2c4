"""The exchange on Redis. Waiting has a connection of its own: a blocked connection answers nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from gateway.coordination import resp
from gateway.coordination.exchange import MAX_TAKEN
from gateway.coordination.pipelined_redis import PipelinedRedis
from gateway.coordination.redis_faults import described
from gateway.coordination.resp import ErrorReply
from gateway.coordination.store import CoordinationUnavailable

TIMEOUT_S = 0.5
LONGEST_WAIT_S = 5.0  # of one blocking read


class RedisExchange:
    """Implements Exchange. Each command has one key."""

    def __init__(self, url: str, prefix: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._prefix = prefix
        self._redis = PipelinedRedis(url, timeout_s=timeout_s)
        self._waiting = PipelinedRedis(url, timeout_s=LONGEST_WAIT_S + timeout_s)

    async def get(self, name: str) -> bytes | None:
        return cast("bytes | None", await _execute(self._redis, "GET", self._key(name)))

    async def put(self, name: str, value: bytes, ttl_s: int) -> None:
        await _execute(self._redis, "SET", self._key(name), value, "EX", ttl_s)

    async def claim(self, name: str, ttl_s: int) -> bool:
        return await _execute(self._redis, "SET", self._key(name), b"1", "NX", "EX", ttl_s) is not None

    async def push(self, box: str, message: bytes, ttl_s: int) -> None:
        key = self._key(box)
        with _mapped_errors():
            await self._redis.execute_all([resp.command("RPUSH", key, message), resp.command("EXPIRE", key, ttl_s)])

    async def take(self, box: str, wait_s: float) -> list[bytes]:
        wait = f"{min(wait_s, LONGEST_WAIT_S):.3f}"
        first = cast("list[bytes] | None", await _execute(self._waiting, "BLPOP", self._key(box), wait))
        if first is None:
            return []
        try:
            more = await _execute(self._redis, "LPOP", self._key(box), MAX_TAKEN - 1)
        except CoordinationUnavailable:  # the first is taken already, and would be lost
            more = None
        return [first[1], *cast("list[bytes]", more or [])]

    def close(self) -> None:
        self._redis.close()
        self._waiting.close()

    def _key(self, name: str) -> str:
        return f"{self._prefix}{name}"


async def _execute(connection: PipelinedRedis, *parts: str | bytes | int) -> object:
    with _mapped_errors():
        return await connection.execute(resp.command(*parts))


@contextmanager
def _mapped_errors() -> Iterator[None]:
    try:
        yield
    except (ErrorReply, OSError) as fault:
        raise CoordinationUnavailable(described(fault)) from fault
