"""Tables in memory with a bound."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def put_newest(table: OrderedDict[K, V], key: K, value: V, bound: int) -> None:
    """Put the entry last. Past `bound` entries the first one leaves."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > bound:
        table.popitem(last=False)
