"""The exchange on Redis. Each kind of waiting has a connection of its own: a blocked one answers nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from gateway.coordination import resp
from gateway.coordination.exchange import LOG_ENTRIES, MAX_TAKEN
from gateway.coordination.pipelined_redis import PipelinedRedis
from gateway.coordination.redis_faults import described
from gateway.coordination.resp import ErrorReply
from gateway.coordination.store import CoordinationUnavailable

TIMEOUT_S = 0.5
LONGEST_WAIT_S = 5.0  # of one blocking read

# One step: of two processes one gets the last place, and no table stays without an end.
_SET_FIELD = """
local is_new = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0
if is_new and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""


class RedisExchange:
    """Implements Exchange. Each command has one key."""

    def __init__(self, url: str, prefix: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._prefix = prefix
        self._redis = PipelinedRedis(url, timeout_s=timeout_s)
        self._waiting = PipelinedRedis(url, timeout_s=LONGEST_WAIT_S + timeout_s)
        self._following = PipelinedRedis(url, timeout_s=LONGEST_WAIT_S + timeout_s)

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

    async def set_field(self, name: str, field: bytes, value: bytes, *, ttl_s: int, most: int) -> bool:
        key = self._key(name)
        return await _execute(self._redis, "EVAL", _SET_FIELD, 1, key, field, value, ttl_s, most) == 1

    async def remove_field(self, name: str, field: bytes) -> None:
        await _execute(self._redis, "HDEL", self._key(name), field)

    async def fields(self, name: str, *, ttl_s: int) -> dict[bytes, bytes]:
        found = cast("list[bytes]", await _execute(self._redis, "HGETALL", self._key(name)))
        if found:
            await _execute(self._redis, "EXPIRE", self._key(name), ttl_s)
        return dict(zip(found[::2], found[1::2], strict=True))

    async def append(self, log: str, entry: bytes, ttl_s: int) -> None:
        await _execute(self._redis, "XADD", self._key(log), "MAXLEN", "~", LOG_ENTRIES, "*", "e", entry)
        await _execute(self._redis, "EXPIRE", self._key(log), ttl_s)

    async def end_of(self, log: str) -> str:
        last = await _execute(self._redis, "XREVRANGE", self._key(log), "+", "-", "COUNT", 1)
        return cast("list[list[bytes]]", last)[0][0].decode() if last else "0-0"

    async def read_after(self, log: str, place: str, wait_s: float) -> tuple[str, list[bytes]]:
        wait_ms = max(1, round(min(wait_s, LONGEST_WAIT_S) * 1000))
        asked = ("XREAD", "COUNT", MAX_TAKEN, "BLOCK", wait_ms, "STREAMS", self._key(log), place)
        found = await _execute(self._following, *asked)
        if not found:
            return place, []
        entries = cast("list[tuple[bytes, list[tuple[bytes, list[bytes]]]]]", found)[0][1]
        return entries[-1][0].decode(), [members[1] for _, members in entries]

    def close(self) -> None:
        for connection in (self._redis, self._waiting, self._following):
            connection.close()

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
