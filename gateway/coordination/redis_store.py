"""The coordination store on Redis: one round trip for each admission, a deadline for each operation."""

from __future__ import annotations

import asyncio
import math
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from gateway.coordination import resp, window
from gateway.coordination.pipelined_redis import PipelinedRedis
from gateway.coordination.redis_faults import code_of, described, ends_connection
from gateway.coordination.redis_scripts import ADMIT, PEEK
from gateway.coordination.resp import ErrorReply
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationUnavailable

THREAD_TIMEOUT_S = 1.0  # of pages and workers, which block only their own thread
OPERATION_TIMEOUT_S = 0.05  # a slow Redis may delay a call by 50 ms at most
KNOWN_COMMANDS = 8_192  # admission commands kept encoded, the least recently used dropped first
BUMPS_PER_PACKET = 500  # in one packet of about 60 kB, which Redis takes in a few milliseconds
TEST_TTL_S = 60  # the key that `ping` writes removes itself
EPOCH_TTL_S = 7 * 86_400  # an expired epoch reads as never bumped, which invalidates entries too


class RedisStore:
    """Implements CoordinationStore. Raises CoordinationUnavailable when Redis does not answer in time."""

    def __init__(
        self,
        url: str,
        new_value: Callable[[], str],
        prefix: str = "gateway:",
        *,
        operation_s: float | None = None,
        thread_s: float | None = None,
    ) -> None:
        """`operation_s` and `thread_s` replace OPERATION_TIMEOUT_S and THREAD_TIMEOUT_S."""
        self._url = url
        self._prefix = prefix
        self._new_value = new_value
        self._operation_s = OPERATION_TIMEOUT_S if operation_s is None else operation_s
        self._sync = _client(url, THREAD_TIMEOUT_S if thread_s is None else thread_s)
        self._probe_client = _client(url, self._operation_s)  # for `ping`, with the deadline of calls
        # A connection belongs to the event loop that opened it.
        self._connections: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, PipelinedRedis] = (
            weakref.WeakKeyDictionary()
        )
        self.steady_since_s = -math.inf
        self._script = self._sync.register_script(ADMIT)
        self._peek = self._sync.register_script(PEEK)
        # All admissions of a caller are the same command: it is encoded once.
        self._cached_admit_command = lru_cache(maxsize=KNOWN_COMMANDS)(self._admit_command)

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        encoded = (self._admit_command if rule.keeps_log else self._cached_admit_command)(rule, key, tuple(epochs))
        pipelined = self._pipelined()
        try:
            try:
                reply = await pipelined.execute(encoded)
            except ErrorReply as fault:
                if fault.code != "NOSCRIPT":
                    raise
                # Redis restarted, counted nothing
                reply = await pipelined.execute(self._eval_command(rule, key, epochs))
        except (ErrorReply, OSError) as fault:
            self._drop_idle_connections(fault)
            raise CoordinationUnavailable(described(fault)) from fault
        return self._admission(rule, cast(list[object], reply), has_epochs=True)

    async def charge(self, rule: Rule, key: str, units: int) -> Admission:
        # EVAL carries the script, so that a restarted server counts at once.
        [reply] = await self._execute(self._eval_command(rule, key, (), units))
        return self._admission(rule, cast(list[object], reply), has_epochs=True)

    def hit(self, rule: Rule, key: str) -> Admission:
        keys, arguments = self._call(rule, key, ())
        with self._mapped_errors():
            return self._admission(rule, self._script(keys=keys, args=arguments), has_epochs=False)

    def peek(self, rule: Rule, key: str) -> Admission:
        keys, arguments = self._call(rule, key, ())
        with self._mapped_errors():
            return self._admission(rule, self._peek(keys=keys, args=arguments), has_epochs=False)

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        [values] = await self._execute(resp.command("MGET", *map(self._epoch_key, names)))
        return _texts(values)

    async def begin_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        keys = [self._epoch_key(name) for name in names]
        begin = [resp.command("SET", key, self._new_value(), "EX", EPOCH_TTL_S, "NX") for key in keys]
        *_, values = await self._execute(*begin, resp.command("MGET", *keys))
        return _texts(values)

    async def renew_epoch(self, name: str) -> None:
        await self._execute(resp.command("SET", self._epoch_key(name), self._new_value(), "EX", EPOCH_TTL_S, "XX"))

    def bump_epochs(self, names: Sequence[str]) -> None:
        for first in range(0, len(names), BUMPS_PER_PACKET):
            with self._mapped_errors(), self._sync.pipeline(transaction=False) as pipeline:
                for name in names[first : first + BUMPS_PER_PACKET]:
                    pipeline.set(self._epoch_key(name), self._new_value(), ex=EPOCH_TTL_S)
                pipeline.execute()

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        with self._mapped_errors():
            self._sync.set(f"{self._prefix}health:{vendor}", state, ex=ttl_s)

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        if not vendors:
            return {}
        with self._mapped_errors():
            values = self._sync.mget([f"{self._prefix}health:{vendor}" for vendor in vendors])
        return {vendor: _bytes(value) for vendor, value in zip(vendors, values, strict=True) if value is not None}

    def ping(self) -> None:
        with self._mapped_errors():  # a write: a replica answers reads as well
            self._probe_client.set(f"{self._prefix}tested", b"1", ex=TEST_TTL_S)

    async def aclose(self) -> None:
        pipelined = self._connections.pop(asyncio.get_running_loop(), None)
        if pipelined is not None:
            pipelined.close()

    async def _execute(self, *commands: bytes) -> list[object]:
        pipelined = self._pipelined()
        try:
            if len(commands) == 1:  # without gather's task, and the pass of the loop that it takes
                return [await pipelined.execute(commands[0])]
            return await asyncio.gather(*map(pipelined.execute, commands))
        except (ErrorReply, OSError) as fault:
            self._drop_idle_connections(fault)
            raise CoordinationUnavailable(described(fault)) from fault

    @contextmanager
    def _mapped_errors(self) -> Iterator[None]:
        try:
            yield
        except (redis.exceptions.RedisError, OSError) as fault:
            self._drop_idle_connections(fault)
            raise CoordinationUnavailable(described(fault)) from fault

    def _drop_idle_connections(self, fault: Exception) -> None:
        """After a timeout or a reply of ENDS_CONNECTION, close all idle connections. Thread-safe."""
        # Each of them would cost a timeout or an error of its own after a failover.
        if code_of(fault) and not ends_connection(fault):
            return
        for client in (self._sync, self._probe_client):
            client.connection_pool.disconnect(inuse_connections=False)
        for loop, pipelined in list(self._connections.items()):
            if not loop.is_closed():
                loop.call_soon_threadsafe(pipelined.close_if_idle)

    def _pipelined(self) -> PipelinedRedis:
        loop = asyncio.get_running_loop()
        known = self._connections.get(loop)
        if known is None:
            known = self._connections[loop] = PipelinedRedis(
                self._url, timeout_s=self._operation_s, on_open=self._on_open
            )
        return known

    def _on_open(self) -> None:
        self.steady_since_s = time.monotonic()

    def _admit_command(self, rule: Rule, key: str, epochs: Sequence[str]) -> bytes:
        keys, arguments = self._call(rule, key, epochs)
        return resp.command("EVALSHA", str(self._script.sha), len(keys), *keys, *arguments)

    def _eval_command(self, rule: Rule, key: str, epochs: Sequence[str], units: int = 1) -> bytes:
        """The admission with the script's text, for a server that does not know its hash."""
        keys, arguments = self._call(rule, key, epochs, units)
        return resp.command("EVAL", ADMIT, len(keys), *keys, *arguments)

    def _call(self, rule: Rule, key: str, epochs: Sequence[str], units: int = 1) -> tuple[list[str], list[str | int]]:
        # A key for each kind of window: a changed limit never reads a ring as a log.
        kind = "rate-log" if rule.keeps_log else "rate"
        keys = [f"{self._prefix}{kind}:{rule.name}:{key}", *map(self._epoch_key, epochs)]
        if rule.keeps_log:  # each admission in the log needs a unique member
            return keys, [rule.limit, rule.window_s * 1000, units, self._new_value()]
        return keys, [rule.limit, rule.window_s * 1000, units]

    def _epoch_key(self, name: str) -> str:
        return f"{self._prefix}epoch:{name}"

    @staticmethod
    def _admission(rule: Rule, reply: list[object], *, has_epochs: bool) -> Admission:
        allowed, remaining, retry_ms, *values = reply
        decision = window.Decision(bool(allowed), cast(int, remaining), cast(int, retry_ms))
        return Admission.of(
            rule, decision, tuple([cast(bytes, value).decode() for value in values]) if has_epochs else None
        )


def _client(url: str, timeout_s: float) -> redis.Redis:
    # One retry for a connection that was closed while idle, none after a timeout.
    retry = Retry(NoBackoff(), 1, supported_errors=(redis.exceptions.ConnectionError,))
    return redis.Redis.from_url(url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=retry)


def _texts(values: object) -> tuple[str, ...]:
    return tuple((value or b"").decode() for value in cast(list[bytes | None], values))


def _bytes(value: bytes | str | None) -> bytes:
    # redis-py types replies for both; without response decoding they are bytes.
    return value.encode() if isinstance(value, str) else value or b""
