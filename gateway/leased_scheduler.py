"""The scheduler of beat where a Redis is shared. Of several, the one that holds the lease sends tasks.

    standing by --the lease is free, or its holder is silent for LEASE_S--> sending
    sending --the lease is not renewed, or the queue is away--> standing by

Each one goes through the schedule all the time, so that a successor goes on where its predecessor stopped. A task whose
time falls between the two is sent at its next time; every task can be derived from the database again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import redis
from celery.beat import PersistentScheduler, ScheduleEntry
from redis.exceptions import LockError, RedisError

log = logging.getLogger(__name__)

LEASE_KEY = "gateway:queue:schedule-lease"
LEASE_S = 15.0  # how long the schedule stands still after its holder was killed
RENEW_S = 4.0  # three attempts within a lease
TIMEOUT_S = 2.0  # of one command; a Redis that hangs must not hold the schedule for longer than a lease


class Lease:
    """A lock in Redis that ends by itself unless its holder renews it."""

    def __init__(self, client: redis.Redis, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = client.lock(LEASE_KEY, timeout=LEASE_S, thread_local=False)
        self._clock = clock
        self._ask_at = self._held_until = float("-inf")

    def is_held(self) -> bool:
        """Whether this process may send. Asks Redis every RENEW_S at most."""
        now = self._clock()
        if now >= self._ask_at:
            self._ask_at = now + RENEW_S
            was_held = now < self._held_until
            # Counted from before the question: Redis counts from later on.
            self._held_until = now + LEASE_S if self._renew_or_acquire() else now
            if was_held != (is_held := self._held_until > now):
                log.info("This scheduler %s.", "sends the tasks" if is_held else "stands by")
        return now < self._held_until

    def release(self) -> None:
        """Let another one take over at once."""
        self._held_until = self._ask_at = float("-inf")
        try:
            self._lock.release()
        except RedisError as fault:  # not ours, or Redis is away: it ends by itself
            log.info("The schedule's lease was not given back: %s", fault)

    def _renew_or_acquire(self) -> bool:
        try:
            try:
                return bool(self._lock.reacquire())
            except LockError:  # never held, or ended meanwhile
                return bool(self._lock.acquire(blocking=False))
        except RedisError as fault:
            log.warning("The schedule's lease cannot be asked for: %s", fault)
            return False


class LeasedScheduler(PersistentScheduler):  # type: ignore[misc]
    """Celery's scheduler, which sends a task only while it holds the lease."""

    @cached_property
    def lease(self) -> Lease:
        """Made with the first task that is due: a scheduler that only reads the schedule asks for none."""
        url = str(self.app.conf.broker_url)
        return Lease(redis.Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S))

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send one due task, or let its time pass."""
        if self.lease.is_held():
            super().apply_entry(entry, producer=producer)

    def close(self) -> None:
        """End in good order; beat calls it twice."""
        super().close()
        if lease := self.__dict__.pop("lease", None):
            lease.release()
