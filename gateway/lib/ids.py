"""Identifiers: random for what an outsider sees, time-ordered for log rows."""

from __future__ import annotations

import os
import time
import uuid

from gateway.lib.errors import NotFound


def new_id() -> uuid.UUID:
    """A random identifier. Spec: D14"""
    return uuid.uuid4()


def new_log_id() -> uuid.UUID:
    """A time-ordered identifier (RFC 9562 version 7), so that log rows land at the end of the index. Spec: D14"""
    return log_id_at(time.time_ns() // 1_000_000, os.urandom(10))


def log_id_at(milliseconds: int, tail: bytes) -> uuid.UUID:
    """The identifier of a log row of that moment (Unix time); the same `tail`, 10 bytes, gives the same one."""
    value = (milliseconds & ((1 << 48) - 1)) << 80 | int.from_bytes(tail, "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=value)


def known_id(text: object) -> uuid.UUID:
    """The identifier of a path or a form.

    Raises: NotFound for what can name nothing, as for what names nothing.   Spec: D4
    """
    key = parse_id(text)
    if key is None:
        raise NotFound
    return key


def parse_id(text: object) -> uuid.UUID | None:
    """The identifier in its one spelling (lower-case, dashed), or None: other spellings and types name nothing."""
    if not isinstance(text, str):
        return None
    try:
        value = uuid.UUID(text)
    except ValueError:
        return None
    return value if str(value) == text else None
