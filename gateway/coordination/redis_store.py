"""The coordination store on Redis: one round trip for each admission, a deadline for each operation."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from gateway.coordination import resp, window
from gateway.coordination.hash_tags import by_tag, is_tagged, tag_of, tag_of_subject
from gateway.coordination.pipelined_redis import PipelinedRedis
from gateway.coordination.polled_epoch import PolledEpoch
from gateway.coordination.redis_faults import code_of, described, ends_connection
from gateway.coordination.redis_keys import RedisKeys
from gateway.coordination.redis_scripts import ADMIT, PEEK
from gateway.coordination.resp import ErrorReply
from gateway.coordination.returns import Returns
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationUnavailable

THREAD_TIMEOUT_S = 1.0  # of pages and workers, which block only their own thread
OPERATION_TIMEOUT_S = 0.05  # a slow Redis may delay a call by 50 ms at most
KNOWN_COMMANDS = 8_192  # admission commands kept encoded, the least recently used dropped first
BUMPS_PER_PACKET = 500  # in one packet of about 60 kB, which Redis takes in a few milliseconds
TEST_TTL_S = 60  # the key that `ping` writes removes itself
EPOCH_TTL_S = 7 * 86_400  # an expired epoch reads as never bumped, which invalidates entries too


@dataclass(frozen=True, slots=True)
class _Admit:
    """One admission: a script that counts and reads the epochs of its slot, and an MGET for each other slot."""

    packet: tuple[bytes, ...]
    names: tuple[tuple[str, ...], ...]  # the epochs that each command reads
    polled: tuple[str, ...]  # epochs that no command reads
    order: tuple[int, ...]  # indexes of the epochs asked for, in `names` and `polled` one after the other


class RedisStore:
    """Implements CoordinationStore. Raises CoordinationUnavailable when Redis does not answer in time."""

    def __init__(
        self,
        url: str,
        new_value: Callable[[], str],
        prefix: str = "gateway:",
        *,
        is_cluster: bool = False,
        operation_s: float | None = None,
        thread_s: float | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_cluster`: the keys of a command must share a slot. `operation_s` and `thread_s` replace the timeouts."""
        self._url = url
        self._keys = RedisKeys(prefix, with_earlier=not is_cluster)
        self._new_value = new_value
        self._operation_s = OPERATION_TIMEOUT_S if operation_s is None else operation_s
        self._sync = _client(url, THREAD_TIMEOUT_S if thread_s is None else thread_s)
        self._probe_client = _client(url, self._operation_s)  # for `ping`, with the deadline of calls
        # A connection belongs to the event loop that opened it.
        self._connections: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, PipelinedRedis] = (
            weakref.WeakKeyDictionary()
        )
        self.returns = Returns()
        self._monotonic = monotonic
        self._polled: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, PolledEpoch]] = (
            weakref.WeakKeyDictionary()
        )
        self._script = self._sync.register_script(ADMIT)
        self._peek = self._sync.register_script(PEEK)
        # All admissions of a caller are the same commands: they are encoded once.
        self._cached_admit_commands = lru_cache(maxsize=KNOWN_COMMANDS)(self._admit_commands)

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        commands = (self._admit_commands if rule.keeps_log else self._cached_admit_commands)(rule, key, tuple(epochs))
        polled = [self._polled_epoch(name) for name in commands.polled]
        for epoch in polled:
            epoch.refresh()
        replies = cast(list[list[object]], await self._admitted(commands, rule, key))
        reply = replies[0]
        values = [cast(bytes, value).decode() for value in reply[3:]]
        if len(replies) > 1:
            for names, found in zip(commands.names[1:], replies[1:], strict=True):
                values += self._keys.values(cast(list[bytes | None], found), names)
        for epoch in polled:
            young = epoch.young()
            values.append(await epoch.current() if young is None else young)
        return self._admission(rule, reply, tuple([values[index] for index in commands.order]))

    async def _admitted(self, commands: _Admit, rule: Rule, key: str) -> list[object]:
        pipelined = self._pipelined()
        try:
            try:
                return await pipelined.execute_all(commands.packet)
            except ErrorReply as fault:
                if fault.code != "NOSCRIPT":
                    raise
                # Redis restarted, counted nothing
                script = self._eval_command(rule, key, commands.names[0])
                return await pipelined.execute_all((script, *commands.packet[1:]))
        except (ErrorReply, OSError) as fault:
            self._drop_idle_connections(fault)
            raise CoordinationUnavailable(described(fault)) from fault

    async def charge(self, rule: Rule, key: str, units: int) -> Admission:
        # EVAL carries the script, so that a restarted server counts at once.
        [reply] = await self._execute(self._eval_command(rule, key, (), units))
        return self._admission(rule, cast(list[object], reply), ())

    def hit(self, rule: Rule, key: str) -> Admission:
        keys, arguments = self._call(rule, key, ())
        with self._mapped_errors():
            return self._admission(rule, self._script(keys=keys, args=arguments), None)

    def peek(self, rule: Rule, key: str) -> Admission:
        keys, arguments = self._call(rule, key, ())
        with self._mapped_errors():
            return self._admission(rule, self._peek(keys=keys, args=arguments), None)

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        groups, asked_at_s = list(by_tag(names).values()), self._monotonic()
        replies = await self._execute(*(resp.command("MGET", *self._keys.read(group)) for group in groups))
        known: dict[str, str] = {}
        for group, values in zip(groups, replies, strict=True):
            known.update(zip(group, self._keys.values(cast(list[bytes | None], values), group), strict=True))
        for name, value in known.items():
            if not is_tagged(name):  # or an admission would contradict what was just read
                self._polled_epoch(name).learn(value, asked_at_s)
        return tuple([known[name] for name in names])

    async def begin_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        # The earlier names too: a process of the release before renews only an epoch that has a value.
        keys = [key for name in names for key in self._keys.read([name])]
        await self._execute(*(resp.command("SET", key, self._new_value(), "EX", EPOCH_TTL_S, "NX") for key in keys))
        return await self.read_epochs(names)

    async def renew_epoch(self, name: str) -> None:
        keys = self._keys.read([name])
        await self._execute(*(resp.command("SET", key, self._new_value(), "EX", EPOCH_TTL_S, "XX") for key in keys))

    def bump_epochs(self, names: Sequence[str]) -> None:
        for first in range(0, len(names), BUMPS_PER_PACKET):
            with self._mapped_errors(), self._sync.pipeline(transaction=False) as pipeline:
                for name in names[first : first + BUMPS_PER_PACKET]:
                    for key in self._keys.read([name]):
                        pipeline.set(key, self._new_value(), ex=EPOCH_TTL_S)
                pipeline.execute()

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        with self._mapped_errors():
            self._sync.set(self._keys.health(vendor), state, ex=ttl_s)

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        if not vendors:
            return {}
        # Not MGET: vendors are in slots of their own.
        with self._mapped_errors(), self._sync.pipeline(transaction=False) as pipeline:
            for vendor in vendors:
                pipeline.get(self._keys.health(vendor))
            values = pipeline.execute()
        return {vendor: _bytes(value) for vendor, value in zip(vendors, values, strict=True) if value is not None}

    def ping(self) -> None:
        with self._mapped_errors():  # a write: a replica answers reads as well
            self._probe_client.set(f"{self._keys.prefix}tested", b"1", ex=TEST_TTL_S)

    async def aclose(self) -> None:
        for epoch in self._polled.pop(asyncio.get_running_loop(), {}).values():
            epoch.close()
        pipelined = self._connections.pop(asyncio.get_running_loop(), None)
        if pipelined is not None:
            pipelined.close()

    async def _execute(self, *commands: bytes) -> list[object]:
        try:
            return await self._pipelined().execute_all(commands)
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
        self.returns.add(self._monotonic())

    def _admit_commands(self, rule: Rule, key: str, epochs: tuple[str, ...]) -> _Admit:
        # Of more callers in turn than KNOWN_COMMANDS, each admission comes here: one pass over the names.
        polled: list[str] = []
        groups: dict[str, list[str]] = {}
        for name in epochs:
            (groups.setdefault(tag_of(name), []) if is_tagged(name) else polled).append(name)
        slots = [groups.pop(tag_of_subject(key), []), *groups.values()]
        keys, arguments = self._call(rule, key, slots[0])
        script = resp.command("EVALSHA", str(self._script.sha), len(keys), *keys, *arguments)
        found = [*chain.from_iterable(slots), *polled]
        return _Admit(
            packet=(script, *(resp.command("MGET", *self._keys.read(names)) for names in slots[1:])),
            names=tuple(map(tuple, slots)),
            polled=tuple(polled),
            order=tuple(map(found.index, epochs)),
        )

    def _polled_epoch(self, name: str) -> PolledEpoch:
        loop = asyncio.get_running_loop()
        of_loop = self._polled.get(loop)
        if of_loop is None:
            of_loop = self._polled[loop] = {}
        known = of_loop.get(name)
        if known is None:
            known = of_loop[name] = PolledEpoch(lambda: self._read_one(name), self._monotonic)
        return known

    async def _read_one(self, name: str) -> str:
        [value] = await self.read_epochs([name]) or [""]
        return value

    def _eval_command(self, rule: Rule, key: str, epochs: Sequence[str], units: int = 1) -> bytes:
        """The admission with the script's text, for a server that does not know its hash."""
        keys, arguments = self._call(rule, key, epochs, units)
        return resp.command("EVAL", ADMIT, len(keys), *keys, *arguments)

    def _call(self, rule: Rule, key: str, epochs: Sequence[str], units: int = 1) -> tuple[list[str], list[str | int]]:
        """Keys and arguments of the script; `epochs` are in the window's slot."""
        keys = [self._keys.window(rule, key), *self._keys.read(epochs)]
        arguments: list[str | int] = [rule.limit, rule.window_s * 1000, units, len(epochs)]
        if rule.keeps_log:  # each admission in the log needs a unique member
            arguments.append(self._new_value())
        return keys, arguments

    @staticmethod
    def _admission(rule: Rule, reply: list[object], epochs: tuple[str, ...] | None) -> Admission:
        allowed, remaining, retry_ms = reply[:3]
        decision = window.Decision(bool(allowed), cast(int, remaining), cast(int, retry_ms))
        return Admission.of(rule, decision, epochs)


def _client(url: str, timeout_s: float) -> redis.Redis:
    # One retry for a connection that was closed while idle, none after a timeout.
    retry = Retry(NoBackoff(), 1, supported_errors=(redis.exceptions.ConnectionError,))
    return redis.Redis.from_url(url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=retry)


def _bytes(value: bytes | str | None) -> bytes:
    # redis-py types replies for both; without response decoding they are bytes.
    return value.encode() if isinstance(value, str) else value or b""
