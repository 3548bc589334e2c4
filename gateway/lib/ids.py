"""Identifiers: random for rows that outsiders see, time-ordered for log rows. Spec: D14"""

from __future__ import annotations

import os
import threading
import uuid
from datetime import datetime, timedelta

from gateway.lib import clock
from gateway.lib.clock import EPOCH, MILLISECOND
from gateway.lib.errors import NotFound


def new_id() -> uuid.UUID:
    return uuid.uuid4()


class _LogIds:
    """Identifiers of log rows; those of one process sort as they were made (RFC 9562 6.2, method 2)."""

    __slots__ = ("_last", "_lock")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """The next one is random. A forked process must not count on from its parent's last one."""
        self._lock = threading.Lock()
        self._last = 0

    def next(self, milliseconds: int) -> uuid.UUID:
        """The one after the last if that is of the same millisecond, else a random one of this millisecond."""
        with self._lock:
            last = self._last
            if last >> 80 == milliseconds and ~last & _RANDOM_BITS:  # else counting up would reach the variant
                self._last = last + 1
                return uuid.UUID(int=self._last)
            made = log_id_at(milliseconds, os.urandom(10))
            self._last = made.int
            return made


NO_ID = uuid.UUID(int=0)  # before all others
LAST_ID = uuid.UUID(int=(1 << 128) - 1)  # after all others
_RANDOM_BITS = (1 << 62) - 1  # the last ones, below the variant
_MAX_MILLISECONDS = (1 << 48) - 1
_log_ids = _LogIds()
os.register_at_fork(after_in_child=_log_ids.forget)


def new_log_id() -> uuid.UUID:
    return log_id_for(clock.now())


def log_id_for(moment: datetime) -> uuid.UUID:
    """RFC 9562 version 7 for a moment with a zone: log rows land at the end of the index."""
    return _log_ids.next(milliseconds_of(moment))


def milliseconds_of(moment: datetime) -> int:
    """Returns whole milliseconds since the Unix epoch; those of years before 1970 are negative."""
    return (moment - EPOCH) // MILLISECOND


def time_of(log_id: uuid.UUID) -> datetime:
    return EPOCH + timedelta(milliseconds=log_id.int >> 80)


def first_log_id_at(moment: datetime) -> uuid.UUID:
    """The lowest id that a row of this moment or later can have; the moment is rounded up to the millisecond."""
    return uuid.UUID(int=min(max(-((EPOCH - moment) // MILLISECOND), 0), _MAX_MILLISECONDS) << 80)


def log_id_at(milliseconds: int, tail: bytes) -> uuid.UUID:
    """The log id for a Unix time in milliseconds and 10 bytes of `tail`; the same input gives the same id."""
    value = (milliseconds & _MAX_MILLISECONDS) << 80 | int.from_bytes(tail, "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=value)


def known_id(text: object) -> uuid.UUID:
    """Raises: NotFound for other spellings, as for an unknown id. Spec: D4"""
    key = parse_id(text)
    if key is None:
        raise NotFound
    return key


def parse_id(text: object) -> uuid.UUID | None:
    """The id if it is written in lower case with dashes, else None."""
    if not isinstance(text, str):
        return None
    try:
        value = uuid.UUID(text)
    except ValueError:
        return None
    return value if str(value) == text else None
