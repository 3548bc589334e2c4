"""A body that a cache keeps, and that several responses send at the same time."""

from __future__ import annotations

from collections.abc import Hashable

from gateway.lib import body_budgets
from gateway.lib.byte_budget import Reservation


class SharedBody:
    """One event loop. Bytes that count where they are kept, or else in the budget of answers while they are sent.

    Outside the cache they count once for all responses, for the `owner` that built them.
    """

    __slots__ = ("_content", "_is_kept", "_owner", "_reservation", "_responses")

    def __init__(self, content: bytes, *, owner: Hashable, is_kept: bool) -> None:
        self._content, self._owner, self._is_kept = content, owner, is_kept
        self._responses = 0
        self._reservation: Reservation | None = None

    def __bytes__(self) -> bytes:
        return self._content

    def __len__(self) -> int:
        return len(self._content)

    def drop(self) -> None:
        """The cache keeps it no longer."""
        self._is_kept = False
        self._count()

    def hold(self) -> None:
        """A response sends it, until `release`."""
        self._responses += 1
        self._count()

    def release(self) -> None:
        self._responses -= 1
        self._count()

    def _count(self) -> None:
        if self._responses and not self._is_kept:
            if self._reservation is None:
                self._reservation = body_budgets.vendors().new_reservation(self._owner)
                self._reservation.settle(len(self._content))
        elif self._reservation is not None:
            self._reservation.release()
            self._reservation = None
