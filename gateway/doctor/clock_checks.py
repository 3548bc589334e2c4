"""Clocks of this host, the database and Redis: tokens and windows compare their times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from django.conf import settings

from gateway.doctor import redis_checks
from gateway.doctor.database_checks import is_server, row
from gateway.doctor.verdict import Finding, error, ok, warning
from gateway.lib import clock

# Tokens are accepted up to 30 s before they were issued (D121).
ERROR_S, WARNING_S = 30.0, 2.0


def host_time_s() -> float:
    return clock.now().timestamp()


def database_clock() -> Sequence[Finding]:
    if not is_server():
        return []
    return judged("PostgreSQL", difference_s(_database_time_s))


def redis_clock() -> Sequence[Finding]:
    return judged("Redis", difference_s(_redis_time_s)) if settings.REDIS_URL else []


def difference_s(read: Callable[[], float], host: Callable[[], float] = host_time_s) -> float:
    """How much this host is ahead; the answer is taken to be from the middle of the request."""
    before = host()
    there = read()
    return (before + host()) / 2 - there


def judged(name: str, seconds: float) -> Sequence[Finding]:
    """`seconds`: how much this host is ahead of the server."""
    words = f"This host's clock is {abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} that of {name}."
    if abs(seconds) >= ERROR_S:
        return [error(f"{words} Fresh tokens are refused, or expired ones accepted.")]
    return [(warning if abs(seconds) >= WARNING_S else ok)(words)]


def _database_time_s() -> float:
    return float(row("SELECT extract(epoch FROM clock_timestamp())")[0])


def _redis_time_s() -> float:
    with closing(redis_checks.client(settings.REDIS_URL)) as server:
        seconds, microseconds = server.time()  # type: ignore[misc]
    return float(int(seconds) + int(microseconds) / 1e6)
