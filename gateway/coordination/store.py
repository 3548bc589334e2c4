"""The interface of the coordination store, and its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from gateway.coordination.returns import Returns
from gateway.coordination.rules import Rule
from gateway.coordination.window import Decision
from gateway.lib.errors import DomainError
from gateway.lib.sentences import sentence


# Callers that catch it fall back: rate limits to this process's windows, epochs to unknown.
class CoordinationUnavailable(DomainError):
    """The store did not answer in time. Uncaught, it ends the request with 503. `fault` is for the log."""

    code, message, status = "unavailable", sentence("We can’t do this right now. Try again in a moment."), 503

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def __str__(self) -> str:
        return self.fault


class Admission(msgspec.Struct, frozen=True):
    """An answer of the limiter. `remaining` is in units, also of a refusal, and may be above 0 there.

    `epochs` has the order asked for, with "" for a name never bumped, and is None while they are unknown.
    """

    rule: Rule
    allowed: bool
    remaining: int
    retry_after_s: int
    epochs: tuple[str, ...] | None

    @classmethod
    def of(cls, rule: Rule, decision: Decision, epochs: tuple[str, ...] | None) -> Admission:
        # Whole seconds, rounded up: a client that waits as long is not refused again.
        return cls(rule, decision.allowed, decision.remaining, -(-decision.retry_after_ms // 1000), epochs)


class CoordinationStore(Protocol):
    """Rate-limit windows, epochs and vendor health, shared by every process of the deployment."""

    @property
    def returns(self) -> Returns:
        """When it came back on a new connection: a server that restarted or took over may lack the last bumps."""
        ...

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        """Count one admission under (rule, key) unless the window is full, and read `epochs`: one round trip.

        Epochs without a hash tag, such as the catalog's, may be a second old.
        """
        ...

    async def charge(self, rule: Rule, key: str, units: int) -> Admission:
        """Count `units` at once under (rule, key), or nothing if they do not all fit into the window.

        More units than the limit count as the limit: an empty window admits any number.
        """
        ...

    def hit(self, rule: Rule, key: str) -> Admission:
        """`admit` for synchronous callers, without epochs."""
        ...

    def peek(self, rule: Rule, key: str) -> Admission:
        """The answer the next `hit` would get; counts nothing. `remaining` is what the window still admits."""
        ...

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """The epochs in the order asked for, or None while they are unknown."""
        ...

    async def begin_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """`read_epochs`, after each name without a value was given one."""
        ...

    # Without a value no cache entry depends on the name.
    async def renew_epoch(self, name: str) -> None:
        """Give the name a new value if it has one. Raises: CoordinationUnavailable if no retry follows."""
        ...

    def bump_epochs(self, names: Sequence[str]) -> None:
        """Give each name a new value: entries with the old one are invalid. Raises: CoordinationUnavailable."""
        ...

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None: ...

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        """The states that have not expired, by vendor."""
        ...

    def ping(self) -> None:
        """Check that the store answers and takes writes. Raises: CoordinationUnavailable."""
        ...

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        ...
