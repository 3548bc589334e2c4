"""The processes that run, and the master keys that each of them can open with."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from gateway.keys.models import KeyHolder
from gateway.lib import clock

EVERY_S = 30.0
# A process that has said nothing for so long has ended, or it cannot reach the database.
HOLDS = timedelta(minutes=2)
_KEPT = timedelta(hours=1)


class Holder:
    """This process. A child of a fork is another one. `key_names` are those of its keys, the first one first."""

    def __init__(
        self, role: str, *, key_names: Callable[[], Iterable[str]], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._role, self._key_names, self._monotonic = role, key_names, monotonic
        self._pid, self._id, self._noted_at_s = 0, UUID(int=0), 0.0

    def is_due(self) -> bool:
        return self._pid != os.getpid() or self._monotonic() - self._noted_at_s >= EVERY_S

    def note(self) -> None:
        """Say that the process runs, and forget those that have long ended."""
        if self._pid != os.getpid():
            self._pid, self._id = os.getpid(), uuid4()
        self._noted_at_s, now = self._monotonic(), clock.now()
        name = f"{self._role} {socket.gethostname()[:80]}:{self._pid}"
        values = {"name": name, "key_names": list(self._key_names()), "seen_at": now}
        KeyHolder.objects.update_or_create(id=self._id, defaults=values)
        KeyHolder.objects.filter(seen_at__lt=now - _KEPT).delete()

    def leave(self) -> None:
        if self._pid == os.getpid():
            KeyHolder.objects.filter(id=self._id).delete()


def running(now: datetime) -> Sequence[KeyHolder]:
    """Longest unseen first."""
    return list(KeyHolder.objects.filter(seen_at__gt=now - HOLDS).order_by("seen_at", "id"))


def holders_without(key_name: str, now: datetime) -> Sequence[str]:
    """The names of running processes that cannot open with this master key."""
    return running_names(key_name, now)[1]


def running_names(key_name: str, now: datetime) -> tuple[list[str], list[str]]:
    """(with the master key, without it)."""
    found: tuple[list[str], list[str]] = ([], [])
    for holder in running(now):
        found[key_name not in holder.key_names].append(holder.name)
    return found


def led_by_another_key(key_name: str, now: datetime) -> Sequence[str]:
    """The names of running processes whose first master key is not this one: they lack it, or have another order."""
    return [holder.name for holder in running(now) if holder.key_names[:1] != [key_name]]
