"""The limit of open connections of a process, in total and for each peer address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum

# Imported by uvicorn before the application: no Django here.

# Above the limit a few more connections are read as far as their head: probes are answered, other clients get a 503
# with its reason. The rest is closed at once.
RESERVE = 64
RESERVE_OF_ADDRESS = 8


class Place(Enum):
    """The class of a new connection."""

    REGULAR = 1
    RESERVED = 2  # above the limit: probes are answered, other requests get 503
    NONE = 3  # closed at once


class ConnectionLimit:
    """Counts open connections. `is_proxy` exempts peers that carry many clients from the limit per address."""

    def __init__(self) -> None:
        self._total: int | None = None
        self._of_address = 0
        self._is_proxy: Callable[[str], bool] = lambda _: False
        self._open = {Place.REGULAR: Counter[str](), Place.RESERVED: Counter[str]()}
        self._count = {Place.REGULAR: 0, Place.RESERVED: 0}

    def configure(self, *, total: int | None, of_address: int, is_proxy: Callable[[str], bool]) -> None:
        """`total` None: no limit."""
        self._total, self._of_address, self._is_proxy = total, of_address, is_proxy

    def enter(self, address: str) -> Place:
        """Return the class of a new connection. The caller must call `leave` with it, except for NONE."""
        place = self._free_place(address)
        if place is not Place.NONE:
            self._count[place] += 1
            self._open[place][address] += 1
        return place

    def leave(self, address: str, place: Place) -> None:
        if place is Place.NONE:
            return
        self._count[place] -= 1
        counts = self._open[place]
        counts[address] -= 1
        if not counts[address]:
            del counts[address]

    def _free_place(self, address: str) -> Place:
        if self._total is None:
            return Place.REGULAR
        is_proxy = self._is_proxy(address)
        if self._count[Place.REGULAR] < self._total and (
            is_proxy or self._open[Place.REGULAR][address] < self._of_address
        ):
            return Place.REGULAR
        if self._count[Place.RESERVED] < RESERVE and (
            is_proxy or self._open[Place.RESERVED][address] < RESERVE_OF_ADDRESS
        ):
            return Place.RESERVED
        return Place.NONE


limit = ConnectionLimit()  # of the process; gateway.asgi configures it
