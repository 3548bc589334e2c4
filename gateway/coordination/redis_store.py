"""The coordination store of a deployment: Redis, one round trip per admission, every operation with a deadline.

The Lua below is `window.py` in the server, so that reading the window, counting and reading the epochs is one atomic
step for all hosts; the clock is Redis's own.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from gateway.coordination import resp, window
from gateway.coordination.redis_line import RedisLine
from gateway.coordination.resp import ErrorReply
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationUnavailable

THREAD_TIMEOUT_S = 1.0  # for pages and workers, which wait in a thread of their own
OPERATION_TIMEOUT_S = 0.05  # a slow Redis may cost a call 50 ms, not more
KNOWN_COMMANDS = 8_192
EPOCH_TTL_S = 7 * 86_400  # an epoch that expires reads as never bumped, which kills entries too

_ADMIT = """
local limit, window_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local allowed, remaining, retry = 0, 0, 0
if ARGV[3] == 'log' then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window_ms)
  local count = redis.call('ZCARD', KEYS[1])
  if count < limit then
    redis.call('ZADD', KEYS[1], now, ARGV[4])
    redis.call('PEXPIRE', KEYS[1], window_ms)
    allowed, remaining = 1, limit - count - 1
  else
    local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
    retry = math.max(1, tonumber(oldest[2]) - (now - window_ms))
  end
else
  local slices = 60
  local slots = slices + 1
  local width = math.floor(window_ms / slices)
  local index = math.floor(now / width)
  local head = redis.call('HMGET', KEYS[1], 'last', 'total')
  local last, total = tonumber(head[1]), tonumber(head[2])
  if not last or index - last >= slots then
    redis.call('DEL', KEYS[1])
    last, total = index, 0
  end
  for slot = last + 1, index do
    local count = tonumber(redis.call('HGET', KEYS[1], slot % slots))
    if count then
      total = total - count
      redis.call('HDEL', KEYS[1], slot % slots)
    end
  end
  if index > last then last = index end
  if total < limit then
    redis.call('HINCRBY', KEYS[1], index % slots, 1)
    total = total + 1
    allowed, remaining = 1, limit - total
  else
    local oldest = index
    for slot = index - slices, index do
      if redis.call('HEXISTS', KEYS[1], slot % slots) == 1 then oldest = slot break end
    end
    retry = math.max(1, (oldest + slots) * width - now)
  end
  redis.call('HSET', KEYS[1], 'last', last, 'total', total)
  redis.call('PEXPIRE', KEYS[1], window_ms + 2 * width)
end
local answer = {allowed, remaining, retry}
for i = 2, #KEYS do answer[i + 2] = redis.call('GET', KEYS[i]) or '' end
return answer
"""

# `window.look`: reads only.
_PEEK = """
local limit, window_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local used, retry = 0, 0
if ARGV[3] == 'log' then
  local edge = now - window_ms
  local inside = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. edge, '+inf', 'WITHSCORES')
  used = #inside / 2
  if used >= limit then retry = math.max(1, tonumber(inside[2]) - edge) end
else
  local slices = 60
  local slots = slices + 1
  local width = math.floor(window_ms / slices)
  local index = math.floor(now / width)
  local last = tonumber(redis.call('HGET', KEYS[1], 'last')) or index
  local oldest = nil
  for slot = math.max(index, last) - slices, last do
    local count = tonumber(redis.call('HGET', KEYS[1], slot % slots))
    if count then
      used = used + count
      oldest = oldest or slot
    end
  end
  if used >= limit then retry = math.max(1, ((oldest or index) + slots) * width - now) end
end
local left = math.max(0, limit - used)
return {left > 0 and 1 or 0, left, retry}
"""


class RedisStore:
    """Implements CoordinationStore. Raises CoordinationUnavailable when Redis does not answer in time."""

    def __init__(self, url: str, new_value: Callable[[], str], prefix: str = "gateway:") -> None:
        self._url = url
        self._prefix = prefix
        self._new_value = new_value
        self._sync = redis.Redis.from_url(
            url, socket_timeout=THREAD_TIMEOUT_S, socket_connect_timeout=THREAD_TIMEOUT_S, retry=Retry(NoBackoff(), 1)
        )
        # One connection per event loop: it belongs to the loop that opened it.
        self._lines: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, RedisLine] = weakref.WeakKeyDictionary()
        self._script = self._sync.register_script(_ADMIT)
        self._peek = self._sync.register_script(_PEEK)
        # A caller's admissions differ in nothing: what is sent for them is put together once.
        self._ring_command = lru_cache(maxsize=KNOWN_COMMANDS)(self._admit_command)

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        """See CoordinationStore."""
        encoded = (self._admit_command if rule.keeps_log else self._ring_command)(rule, key, tuple(epochs))
        line = self._line()
        try:
            try:
                answer = await line.ask(encoded)
            except ErrorReply as fault:
                if fault.code != "NOSCRIPT":
                    raise
                answer = await line.ask(self._first_command(rule, key, epochs))  # Redis was restarted: nothing counted
        except (ErrorReply, OSError) as fault:
            raise CoordinationUnavailable(type(fault).__name__) from fault
        return self._admission(rule, cast(list[object], answer), asked=True)

    def hit(self, rule: Rule, key: str) -> Admission:
        """See CoordinationStore."""
        keys, arguments = self._call(rule, key, ())
        try:
            return self._admission(rule, self._script(keys=keys, args=arguments), asked=False)
        except (redis.exceptions.RedisError, OSError) as fault:
            raise CoordinationUnavailable(type(fault).__name__) from fault

    def peek(self, rule: Rule, key: str) -> Admission:
        """See CoordinationStore."""
        keys, arguments = self._call(rule, key, ())
        try:
            return self._admission(rule, self._peek(keys=keys, args=arguments), asked=False)
        except (redis.exceptions.RedisError, OSError) as fault:
            raise CoordinationUnavailable(type(fault).__name__) from fault

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """See CoordinationStore."""
        try:
            values = await self._line().ask(resp.command("MGET", *map(self._epoch_key, names)))
        except (ErrorReply, OSError) as fault:
            raise CoordinationUnavailable(type(fault).__name__) from fault
        return tuple((value or b"").decode() for value in cast(list[bytes | None], values))

    def bump_epochs(self, names: Sequence[str]) -> None:
        """See CoordinationStore."""
        try:
            with self._sync.pipeline(transaction=False) as pipeline:
                for name in names:
                    pipeline.set(self._epoch_key(name), self._new_value(), ex=EPOCH_TTL_S)
                pipeline.execute()
        except (redis.exceptions.RedisError, OSError) as fault:
            raise CoordinationUnavailable(type(fault).__name__) from fault

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        """See CoordinationStore."""
        try:
            self._sync.set(f"{self._prefix}health:{vendor}", state, ex=ttl_s)
        except (redis.exceptions.RedisError, OSError) as fault:
            raise CoordinationUnavailable(type(fault).__name__) from fault

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        """See CoordinationStore."""
        if not vendors:
            return {}
        try:
            values = self._sync.mget([f"{self._prefix}health:{vendor}" for vendor in vendors])
        except (redis.exceptions.RedisError, OSError) as fault:
            raise CoordinationUnavailable(type(fault).__name__) from fault
        return {vendor: _bytes(value) for vendor, value in zip(vendors, values, strict=True) if value is not None}

    def ping(self) -> None:
        """See CoordinationStore."""
        try:
            self._sync.ping()
        except (redis.exceptions.RedisError, OSError) as fault:
            raise CoordinationUnavailable(type(fault).__name__) from fault

    async def aclose(self) -> None:
        """See CoordinationStore."""
        line = self._lines.pop(asyncio.get_running_loop(), None)
        if line is not None:
            line.close()

    def _line(self) -> RedisLine:
        loop = asyncio.get_running_loop()
        known = self._lines.get(loop)
        if known is None:
            known = self._lines[loop] = RedisLine(self._url, patience_s=OPERATION_TIMEOUT_S)
        return known

    def _admit_command(self, rule: Rule, key: str, epochs: Sequence[str]) -> bytes:
        keys, arguments = self._call(rule, key, epochs)
        return resp.command("EVALSHA", str(self._script.sha), len(keys), *keys, *arguments)

    def _first_command(self, rule: Rule, key: str, epochs: Sequence[str]) -> bytes:
        """The same with the script itself, for a server that has not seen it."""
        keys, arguments = self._call(rule, key, epochs)
        return resp.command("EVAL", _ADMIT, len(keys), *keys, *arguments)

    def _call(self, rule: Rule, key: str, epochs: Sequence[str]) -> tuple[list[str], list[str | int]]:
        """Keys and arguments of the script."""
        # Two kinds of windows, two names: where a limit is changed, a log meets no ring that is still there.
        kind = "rate-log" if rule.keeps_log else "rate"
        keys = [f"{self._prefix}{kind}:{rule.name}:{key}", *map(self._epoch_key, epochs)]
        if rule.keeps_log:  # each admission needs a member of its own; the ring needs none
            return keys, [rule.limit, rule.window_s * 1000, "log", self._new_value()]
        return keys, [rule.limit, rule.window_s * 1000, "ring"]

    def _epoch_key(self, name: str) -> str:
        return f"{self._prefix}epoch:{name}"

    @staticmethod
    def _admission(rule: Rule, answer: list[object], *, asked: bool) -> Admission:
        allowed, remaining, retry_ms, *values = answer
        taken = window.Take(bool(allowed), cast(int, remaining), cast(int, retry_ms))
        return Admission.of(rule, taken, tuple([cast(bytes, value).decode() for value in values]) if asked else None)


def _bytes(value: bytes | str | None) -> bytes:
    """What the client returns without response decoding; it is typed for both."""
    return value.encode() if isinstance(value, str) else value or b""
