"""Figures in documents: `{{ NAME }}` is the setting of that name in words, so that no document repeats a number."""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings

from gateway.coordination.rules import Rule

_FIGURE = re.compile(r"\{\{ (?P<name>[A-Z][A-Z0-9_]*)(?:\|(?P<form>[a-z]+))? \}\}")
_UNITS_S = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_UNITS_BYTES = ((1024 * 1024, "MiB"), (1024, "KiB"), (1, "bytes"))


def filled(source: str) -> str:
    """Raises: AttributeError for a name that is no setting; KeyError for a form that does not exist."""
    return _FIGURE.sub(lambda found: _FORMS[found["form"] or "number"](getattr(settings, found["name"])), source)


def _number(value: Any) -> str:
    if isinstance(value, Rule):
        return f"{_count(value.limit)} in {duration(value.window_s)}"
    return _count(value) if isinstance(value, int) else str(value)


def _count(value: int) -> str:
    return f"{value:,}"


def duration(seconds: float) -> str:
    """In the largest unit that divides it."""
    whole = int(seconds)
    size, unit = next((size, unit) for size, unit in _UNITS_S if whole % size == 0)
    number = whole // size
    return f"{_count(number)} {unit}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    unit, name = next((unit, name) for unit, name in _UNITS_BYTES if number % unit == 0)
    return f"{_count(number // unit)} {name}"


_FORMS = {"number": _number, "duration": duration, "size": size}
