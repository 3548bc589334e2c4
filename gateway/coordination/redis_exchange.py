"""The exchange on Redis. Each kind of waiting has a connection of its own: a blocked one answers nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from gateway.coordination import resp
from gateway.coordination.exchange import LOG_ENTRIES, MARK_BYTES, MAX_TAKEN, Fields, Table
from gateway.coordination.pipelined_redis import PipelinedRedis
from gateway.coordination.redis_faults import described
from gateway.coordination.resp import ErrorReply
from gateway.coordination.store import CoordinationUnavailable

TIMEOUT_S = 0.5
LONGEST_WAIT_S = 5.0  # of one blocking read

# A table is a hash, with its mark under the empty field. Each of its shares is a sorted set: fields of all its tables,
# by the time when they end. KEYS: the table, its shares. Each script is one step: of two processes one gets the last
# place, and no table stays without an end.
_KEEP = """
local function now_s()
  local time = redis.call('TIME')
  return time[1] + time[2] / 1000000
end
local function keep(ttl_s)
  local until_s = now_s() + ttl_s
  redis.call('EXPIRE', KEYS[1], ttl_s)
  for i = 2, #KEYS do
    for _, each in ipairs(redis.call('HKEYS', KEYS[1])) do
      if each ~= '' then redis.call('ZADD', KEYS[i], until_s, KEYS[1] .. each) end
    end
    if redis.call('TTL', KEYS[i]) < ttl_s then redis.call('EXPIRE', KEYS[i], ttl_s) end
  end
end
"""
# ARGV: time to live, field, value, new mark, most of the table, most of each share. Returns 0, or the number of the key
# that is full.
_SET_FIELD = (
    _KEEP
    + """
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[5]) then return 1 end
  for i = 2, #KEYS do
    redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now_s())
    if redis.call('ZCARD', KEYS[i]) >= tonumber(ARGV[4 + i]) then return i end
  end
end
redis.call('HSETNX', KEYS[1], '', ARGV[4])
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
keep(tonumber(ARGV[1]))
return 0
"""
)
# ARGV: time to live.
_FIELDS = (
    _KEEP
    + """
if redis.call('HLEN', KEYS[1]) > 1 then keep(tonumber(ARGV[1])) end
return redis.call('HGETALL', KEYS[1])
"""
)
# ARGV: field; none: all of them, and the table.
_REMOVE = """
local fields = ARGV[1] and {ARGV[1]} or redis.call('HKEYS', KEYS[1])
for _, each in ipairs(fields) do
  for i = 2, #KEYS do redis.call('ZREM', KEYS[i], KEYS[1] .. each) end
end
if ARGV[1] then redis.call('HDEL', KEYS[1], ARGV[1]) else redis.call('DEL', KEYS[1]) end
return 0
"""


class RedisExchange:
    """Implements Exchange. The keys of a command are in one slot of a cluster."""

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

    async def set_field(self, table: Table, field: bytes, value: bytes, *, ttl_s: int) -> str:
        most = [table.most, *(most for _, most in table.shares)]
        full = await self._run(_SET_FIELD, table, ttl_s, field, value, os.urandom(MARK_BYTES), *most)
        return ["", table.name, *(name for name, _ in table.shares)][cast("int", full)]

    async def remove_field(self, table: Table, field: bytes) -> None:
        await self._run(_REMOVE, table, field)

    async def fields(self, table: Table, *, ttl_s: int) -> Fields:
        found = cast("list[bytes]", await self._run(_FIELDS, table, ttl_s))
        values = dict(zip(found[::2], found[1::2], strict=True))
        return Fields(values.pop(b"", b""), values)

    async def drop(self, table: Table) -> None:
        await self._run(_REMOVE, table)

    async def _run(self, script: str, table: Table, *arguments: str | bytes | int) -> object:
        keys = [self._key(table.name), *(self._key(f"{name}places") for name, _ in table.shares)]
        return await _execute(self._redis, "EVAL", script, len(keys), *keys, *arguments)

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
