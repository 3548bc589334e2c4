"""Helpers of selectors: the row that must exist, and values grouped by a key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from django.db.models import Model, QuerySet

from gateway.lib.errors import NotFound

Row = TypeVar("Row", bound=Model)
Key = TypeVar("Key")
Value = TypeVar("Value")


def required_row(rows: QuerySet[Row]) -> Row:
    """The first row. Raises: NotFound. Spec: D4"""
    found = rows.first()
    if found is None:
        raise NotFound
    return found


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Values by key, in the order of the pairs; a key without values is absent."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
