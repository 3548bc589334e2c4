"""The streams of one process that tell callers of changes: bounded, because each holds a connection.

docs/decisions/0110
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from uuid import UUID

from orgs.principal import Principal
from proxy.sessions.shared_places import SharedPlaces

Announced = tuple[bytes, str]  # digest of a vendor's key, and the name of a list


class ListSignal(asyncio.Event):
    """Set when a list of an organization changes. `announced`: by vendors, since it was cleared.

    `session_id`: of the stream's session. `is_nudged`: the session's subscriptions may have changed. `has_missed`: what
    other processes said is not known.
    """

    def __init__(self, session_id: bytes | None = None) -> None:
        super().__init__()
        self.session_id = session_id
        self.announced: set[Announced] = set()
        self.is_nudged = self.has_missed = False

    def take(self) -> frozenset[Announced]:
        """Clear it. Returns what was announced."""
        self.clear()
        announced, self.announced = frozenset(self.announced), set()
        return announced


class StreamPlaces:
    """One event loop."""

    def __init__(self, *, of_all: int, of_organization: int, of_subject: int) -> None:
        self._places = SharedPlaces(of_all, of_organization, of_subject)
        self._signals: dict[UUID, set[ListSignal]] = {}
        self._of_sessions: dict[bytes, set[ListSignal]] = {}

    @property
    def taken(self) -> int:
        return self._places.taken("all")

    def take(self, principal: Principal, session_id: bytes | None = None) -> ListSignal | None:
        """A place, to be given back; None without one."""
        if not self._places.take(*_holders(principal)):
            return None
        signal = ListSignal(session_id)
        if session_id is not None:
            self._of_sessions.setdefault(session_id, set()).add(signal)
        self._signals.setdefault(principal.org_id, set()).add(signal)
        return signal

    def give_back(self, principal: Principal, signal: ListSignal) -> None:
        self._places.give_back(*_holders(principal))
        signals = self._signals[principal.org_id]
        signals.discard(signal)
        if not signals:
            del self._signals[principal.org_id]
        if signal.session_id is not None:
            of_session = self._of_sessions[signal.session_id]
            of_session.discard(signal)
            if not of_session:
                del self._of_sessions[signal.session_id]

    def announce(self, org_id: UUID, announced: Announced | None = None) -> None:
        """A list of the organization has changed. `announced`: by the vendor itself."""
        for signal in self._signals.get(org_id, ()):
            if announced is not None:
                signal.announced.add(announced)
            signal.set()

    def announce_all(self) -> None:
        """Anything may have changed."""
        for signals in self._signals.values():
            for signal in signals:
                signal.is_nudged = signal.has_missed = True
                signal.set()

    def nudge(self, session_id: bytes) -> None:
        """The streams of a session have something to look at."""
        for signal in self._of_sessions.get(session_id, ()):
            signal.is_nudged = True
            signal.set()


def _holders(principal: Principal) -> tuple[Hashable, ...]:
    return "all", principal.org_id, (principal.org_id, principal.subject)
