"""The limit of open connections of a process, in all and for one peer address.

Past the limit a few more are read as far as their head, so that probes are answered and others learn why they are not;
the rest is closed at once. Imported by uvicorn before the application: no Django in here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum

# Past the limit: enough for load balancers that probe, and for one address no more than some of them.
RESERVE = 64
RESERVE_OF_ADDRESS = 8


class Place(Enum):
    """The class of a new connection."""

    REGULAR = 1
    RESERVED = 2  # probes are answered, everything else is 503
    NONE = 3


class ConnectionLimit:
    """Counts open connections. `is_proxy` tells peers that carry many clients and have no bound of their own."""

    def __init__(self) -> None:
        self._total: int | None = None
        self._of_address = 0
        self._is_proxy: Callable[[str], bool] = lambda _: False
        self._open = {Place.REGULAR: Counter[str](), Place.RESERVED: Counter[str]()}
        self._count = {Place.REGULAR: 0, Place.RESERVED: 0}

    def configure(self, *, total: int | None, of_address: int, is_proxy: Callable[[str], bool]) -> None:
        """Set the bounds; `total` None is no bound at all."""
        self._total, self._of_address, self._is_proxy = total, of_address, is_proxy

    def enter(self, address: str) -> Place:
        """The place of a new connection; `leave` must give it back, unless there is none."""
        place = self._free_place(address)
        if place is not Place.NONE:
            self._count[place] += 1
            self._open[place][address] += 1
        return place

    def leave(self, address: str, place: Place) -> None:
        """The connection is closed."""
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
