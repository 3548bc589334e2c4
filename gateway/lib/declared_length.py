"""Pure: the length that a request declares for its body."""

from __future__ import annotations

_LONGEST_DIGITS = 18  # of numbers that are read; Python refuses to read very long ones


def declared_length(value: str) -> int | None:
    """Of Content-Length. None without a number; a number beyond any body is a very large one."""
    if not (value.isascii() and value.isdigit()):
        return None
    return int(value) if len(value) <= _LONGEST_DIGITS else 10**_LONGEST_DIGITS
