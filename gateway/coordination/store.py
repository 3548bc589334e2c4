"""The interface of the coordination store, and the values it answers with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.coordination.rules import Rule
from gateway.coordination.window import Take
from gateway.lib.errors import DomainError


class CoordinationUnavailable(DomainError):
    """The store did not answer in time. Callers decide in a stated direction: limits go local, epochs are unknown.

    Where nobody decides, the request ends as 503. `fault` is for the log.
    """

    code, message, status = "unavailable", "This cannot be done right now. Try again in a moment.", 503

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def __str__(self) -> str:
        return self.fault


@dataclass(frozen=True, slots=True)
class Admission:
    """One answer of the limiter, with the epochs read in the same round trip.

    `epochs` stands in the order asked ("" for a name never bumped) and is None when nobody could say.
    """

    rule: Rule
    allowed: bool
    remaining: int
    retry_after_s: int
    epochs: tuple[str, ...] | None

    @classmethod
    def of(cls, rule: Rule, taken: Take, epochs: tuple[str, ...] | None) -> Admission:
        """In whole seconds, rounded up so that a client that waits as told is not refused again."""
        return cls(rule, taken.allowed, taken.remaining, -(-taken.retry_after_ms // 1000), epochs)


class CoordinationStore(Protocol):
    """Rate windows, epochs and vendor health state, shared by every process of the deployment."""

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        """Count one admission under (rule, key) unless the window is full, and read `epochs`: one round trip."""
        ...

    async def charge(self, rule: Rule, key: str, units: int) -> Admission:
        """Count `units` at once under (rule, key), or nothing if the window has no room for all of them.

        More than the whole limit count as the limit, so that nothing is refused for good. `remaining` is in units, also
        of a refusal, which may leave room for less.
        """
        ...

    def hit(self, rule: Rule, key: str) -> Admission:
        """`admit` for synchronous callers, without epochs."""
        ...

    def peek(self, rule: Rule, key: str) -> Admission:
        """What the next `hit` would meet, and nothing is counted: `remaining` is what the window still admits."""
        ...

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """The epochs in the order asked, or None while they are unknown."""
        ...

    async def begin_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """The epochs in the order asked, after each name without a value was given one; None while they are unknown."""
        ...

    async def renew_epoch(self, name: str) -> None:
        """Give the name a value it never had, if it has one: where there is none, nothing is kept under it anywhere.

        Raises: CoordinationUnavailable when the store did not take it and nothing will make up for that.
        """
        ...

    def bump_epochs(self, names: Sequence[str]) -> None:
        """Give each name a value it never had. Every cache entry that remembers the old one is dead.

        Raises: CoordinationUnavailable.
        """
        ...

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        """Remember a vendor's health state until `ttl_s` has passed."""
        ...

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        """The states that are known and not too old, by vendor."""
        ...

    def ping(self) -> None:
        """Return if the store answers and takes writes. Raises: CoordinationUnavailable."""
        ...

    async def aclose(self) -> None:
        """Close connections that belong to the running event loop."""
        ...
