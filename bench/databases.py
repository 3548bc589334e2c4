"""The back ends of the gateway under test: files of its own by default, PostgreSQL and Redis where they are named.

BENCH_DATABASE_URL names a PostgreSQL server (any database of it): the run makes a database of its own there and drops
it. BENCH_REDIS_URL names a Redis database number: the run removes the keys it has made there.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import LiteralString
from urllib.parse import urlsplit

import psycopg
import redis
from psycopg import sql

from bench.processes import BenchFailed

CONNECT_TIMEOUT_S = 5
SCANNED_AT_ONCE = 10_000
ID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Keys of the gateway that name no organization: made by loading the catalog.
SHARED_KEYS = frozenset({"gateway:epoch:catalog"})
# Names that are digests of lists and credentials, or the address of the load generator.
SHARED_PREFIXES = (b"gateway:tools:", b"gateway:rate:backstop:")


@dataclass(slots=True)
class BackEnds:
    """`environment` leads the gateway to them; the run's own keys in Redis name one of `own_ids`, once those exist."""

    environment: dict[str, str]
    description: str
    own_ids: tuple[str, ...] = ()

    @property
    def are_shared(self) -> bool:
        """Whether several processes can use them."""
        return {"DATABASE_URL", "REDIS_URL"} <= self.environment.keys()


@contextlib.contextmanager
def back_ends(environ: Mapping[str, str]) -> Iterator[BackEnds]:
    """The back ends that `environ` asks for; what the run left in them is gone afterwards.

    Raises: BenchFailed when one does not answer.
    """
    database_url, redis_url = environ.get("BENCH_DATABASE_URL", ""), environ.get("BENCH_REDIS_URL", "")
    names = [
        "PostgreSQL" if database_url else "SQLite (synchronous=FULL)",
        "Redis" if redis_url else "the embedded coordination store",
    ]
    found = BackEnds({}, " and ".join(names))
    with contextlib.ExitStack() as stack:
        if database_url:
            found.environment["DATABASE_URL"] = stack.enter_context(own_database(database_url))
        if redis_url:
            others = _shared_keys(redis_url)
            found.environment["REDIS_URL"] = redis_url
            stack.callback(lambda: remove_keys(redis_url, found.own_ids, keep=others))
        yield found


@contextlib.contextmanager
def own_database(server_url: str) -> Iterator[str]:
    """The address of a new database, which is dropped in the end. Raises: BenchFailed."""
    name = f"bench_{os.getpid()}"
    url = make_database(server_url, name)
    try:
        yield url
    finally:
        drop_database(server_url, name)


def make_database(server_url: str, name: str, template: str = "template1") -> str:
    """Returns its address; `template` is a database without connections. Raises: BenchFailed, also where it exists."""
    try:
        _execute(server_url, "CREATE DATABASE {} TEMPLATE {}", name, template)
    except psycopg.Error as fault:
        raise BenchFailed(f"BENCH_DATABASE_URL: no database could be made there ({_first_line(fault)}).") from None
    return address_of(server_url, name)


def drop_database(server_url: str, name: str) -> None:
    _execute(server_url, "DROP DATABASE {} WITH (FORCE)", name)


def address_of(server_url: str, name: str) -> str:
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


def has_database(server_url: str, name: str) -> bool:
    with psycopg.connect(server_url, connect_timeout=CONNECT_TIMEOUT_S) as connection:
        return connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is not None


def _execute(server_url: str, statement: LiteralString, *names: str) -> None:
    with psycopg.connect(server_url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def remove_keys(redis_url: str, own_ids: Iterable[str], *, keep: AbstractSet[str]) -> None:
    """No key that names one of the ids is left, nor a shared one but those to `keep`. Others are not ours."""
    with redis.Redis.from_url(redis_url, socket_timeout=CONNECT_TIMEOUT_S) as client:
        known, kept = {own_id.encode() for own_id in own_ids}, {name.encode() for name in keep}
        # One look at all keys: there may be thousands of ids.
        for key in client.scan_iter(count=SCANNED_AT_ONCE):
            is_shared = key.startswith(SHARED_PREFIXES) and key not in kept
            if is_shared or known.intersection(ID.findall(key)):
                client.delete(key)
        for name in SHARED_KEYS - keep:
            client.delete(name)


def _shared_keys(redis_url: str) -> frozenset[str]:
    """The shared keys that are there before the run. Raises: BenchFailed without a Redis."""
    try:
        with redis.Redis.from_url(redis_url, socket_timeout=CONNECT_TIMEOUT_S) as client:
            prefixed = [
                key.decode() for key in client.scan_iter(count=SCANNED_AT_ONCE) if key.startswith(SHARED_PREFIXES)
            ]
            return frozenset([*prefixed, *(name for name in SHARED_KEYS if client.exists(name))])
    except redis.exceptions.RedisError as fault:
        raise BenchFailed(f"BENCH_REDIS_URL: no Redis answers there ({type(fault).__name__}).") from None


def _first_line(fault: Exception) -> str:
    lines = str(fault).splitlines()
    return lines[0] if lines else type(fault).__name__
