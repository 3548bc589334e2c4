"""The limit of open connections of a process, in total and for each peer address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum

# Imported by uvicorn before the application: no Django here.

# Above the limit a few more connections are read as far as their head: probes are answered, other clients get a 503
# with its reason. The rest is closed at once. Round numbers: one address can take an eighth of them, each for
# RESERVED_HEAD_TIMEOUT_S, and the probes of a host need one or two.
RESERVE = 64
RESERVE_OF_ADDRESS = 8


class ConnectionSlot(Enum):
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
        self._open = {ConnectionSlot.REGULAR: Counter[str](), ConnectionSlot.RESERVED: Counter[str]()}
        self._count = {ConnectionSlot.REGULAR: 0, ConnectionSlot.RESERVED: 0}

    def configure(self, *, total: int | None, of_address: int, is_proxy: Callable[[str], bool]) -> None:
        """`total` None: no limit."""
        self._total, self._of_address, self._is_proxy = total, of_address, is_proxy

    def acquire(self, address: str) -> ConnectionSlot:
        """Return the class of a new connection. The caller must call `release` with it, except for NONE."""
        slot = self._free_slot(address)
        if slot is not ConnectionSlot.NONE:
            self._count[slot] += 1
            self._open[slot][address] += 1
        return slot

    def release(self, address: str, slot: ConnectionSlot) -> None:
        if slot is ConnectionSlot.NONE:
            return
        self._count[slot] -= 1
        counts = self._open[slot]
        counts[address] -= 1
        if not counts[address]:
            del counts[address]

    def _free_slot(self, address: str) -> ConnectionSlot:
        if self._total is None:
            return ConnectionSlot.REGULAR
        is_proxy = self._is_proxy(address)
        if self._count[ConnectionSlot.REGULAR] < self._total and (
            is_proxy or self._open[ConnectionSlot.REGULAR][address] < self._of_address
        ):
            return ConnectionSlot.REGULAR
        if self._count[ConnectionSlot.RESERVED] < RESERVE and (
            is_proxy or self._open[ConnectionSlot.RESERVED][address] < RESERVE_OF_ADDRESS
        ):
            return ConnectionSlot.RESERVED
        return ConnectionSlot.NONE


limit = ConnectionLimit()  # of the process; gateway.asgi configures it
