"""Identifiers: random for rows that outsiders see, time-ordered for log rows. Spec: D14"""

from __future__ import annotations

import os
import time
import uuid

from gateway.lib.errors import NotFound


def new_id() -> uuid.UUID:
    return uuid.uuid4()


def new_log_id() -> uuid.UUID:
    """RFC 9562 version 7: log rows land at the end of the index."""
    return log_id_at(time.time_ns() // 1_000_000, os.urandom(10))


def log_id_at(milliseconds: int, tail: bytes) -> uuid.UUID:
    """The log id for a Unix time in milliseconds and 10 bytes of `tail`; the same input gives the same id."""
    value = (milliseconds & ((1 << 48) - 1)) << 80 | int.from_bytes(tail, "big")
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
