"""The coordination store of a deployment: Redis, one round trip per admission, every operation with a deadline.

The Lua below is `window.py` in the server, so that reading the window, counting and reading the epochs is one atomic
step for all hosts; the clock is Redis's own.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

from gateway.coordination import window
from gateway.coordination.attention import LONGEST_S, Attention
from gateway.coordination.rules import Rule
from gateway.coordination.shared_trips import SharedTrips
from gateway.coordination.store import Admission, CoordinationUnavailable

OPERATION_TIMEOUT_S = 0.05  # a slow Redis may cost a call 50 ms, not more
COMMANDS_AT_ONCE = 32  # per event loop, each on a connection of its own; more would not make Redis faster
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


_Call = tuple[list[str], list[str | int]]  # keys and arguments of the script
_Live = tuple[redis.asyncio.Redis, asyncio.Semaphore, SharedTrips[_Call]]


class RedisStore:
    """Implements CoordinationStore. Raises CoordinationUnavailable when Redis does not answer in time."""

    def __init__(self, url: str, new_value: Callable[[], str], prefix: str = "gateway:") -> None:
        self._url = url
        self._prefix = prefix
        self._new_value = new_value
        self._sync = redis.Redis.from_url(
            url, socket_timeout=1.0, socket_connect_timeout=1.0, retry=Retry(NoBackoff(), 1)
        )
        # One connection pool per event loop: a connection belongs to the loop that opened it.
        self._per_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Live] = weakref.WeakKeyDictionary()
        self._script = self._sync.register_script(_ADMIT)
        self._peek = self._sync.register_script(_PEEK)

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        """See CoordinationStore."""
        call = self._call(rule, key, epochs)
        try:
            answer = await self._trips().ask(call)
        except (redis.exceptions.RedisError, OSError, TimeoutError) as fault:
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
            async with self._turn() as client:
                values = await client.mget([self._epoch_key(name) for name in names])
        except (redis.exceptions.RedisError, OSError, TimeoutError) as fault:
            raise CoordinationUnavailable(type(fault).__name__) from fault
        return tuple(_bytes(value).decode() for value in values)

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
        live = self._per_loop.pop(asyncio.get_running_loop(), None)
        if live is not None:
            await live[0].aclose()

    async def _travel(self, calls: Sequence[_Call]) -> Sequence[object]:
        """The script's answers to these calls, in one round trip."""
        async with self._turn() as client:
            if len(calls) == 1:
                return [await self._run(client, *calls[0])]
            pipeline = client.pipeline(transaction=False)
            for keys, arguments in calls:
                pipeline.evalsha(self._script.sha, len(keys), *keys, *arguments)
            answers: list[object] = await pipeline.execute(raise_on_error=False)
            for number, answer in enumerate(answers):
                if isinstance(answer, redis.exceptions.NoScriptError):  # Redis was restarted: nothing has been counted
                    answers[number] = await self._run(client, *calls[number])
            return answers

    async def _run(self, client: redis.asyncio.Redis, keys: list[str], arguments: list[str | int]) -> object:
        try:
            answer: object = await client.evalsha(self._script.sha, len(keys), *keys, *arguments)
        except redis.exceptions.NoScriptError:
            answer = await client.eval(_ADMIT, len(keys), *keys, *arguments)
        return answer

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[redis.asyncio.Redis]:
        """A client for one command, and the deadline of that command.

        In a burst commands wait for their turn first, and that time is not Redis's. Without turns the client would
        open a connection for each of them or fail for want of one, and both look like an outage: limits would be
        shared out and epochs unknown just when many call.
        """
        client, turns, _ = self._live()
        if turns.locked():
            async with asyncio.timeout(LONGEST_S):
                await turns.acquire()
        else:
            await turns.acquire()
        try:
            async with Attention(OPERATION_TIMEOUT_S):
                yield client
        finally:
            turns.release()

    def _trips(self) -> SharedTrips[_Call]:
        return self._live()[2]

    def _live(self) -> _Live:
        loop = asyncio.get_running_loop()
        known = self._per_loop.get(loop)
        if known is None:
            client = redis.asyncio.Redis.from_url(
                self._url, socket_connect_timeout=1.0, retry=redis.asyncio.retry.Retry(NoBackoff(), 1)
            )
            known = (client, asyncio.Semaphore(COMMANDS_AT_ONCE), SharedTrips(self._travel))
            self._per_loop[loop] = known
        return known

    def _call(self, rule: Rule, key: str, epochs: Sequence[str]) -> _Call:
        keys = [f"{self._prefix}rate:{rule.name}:{key}", *map(self._epoch_key, epochs)]
        if rule.keeps_log:  # each admission needs a member of its own; the ring needs none
            return keys, [rule.limit, rule.window_s * 1000, "log", self._new_value()]
        return keys, [rule.limit, rule.window_s * 1000, "ring"]

    def _epoch_key(self, name: str) -> str:
        return f"{self._prefix}epoch:{name}"

    @staticmethod
    def _admission(rule: Rule, answer: list[object], *, asked: bool) -> Admission:
        allowed, remaining, retry_ms, *values = answer
        taken = window.Take(bool(allowed), int(str(remaining)), int(str(retry_ms)))
        epochs = tuple(value.decode() if isinstance(value, bytes) else "" for value in values)
        return Admission.of(rule, taken, epochs if asked else None)


def _bytes(value: bytes | str | None) -> bytes:
    """What the client returns without response decoding; it is typed for both."""
    return value.encode() if isinstance(value, str) else value or b""
