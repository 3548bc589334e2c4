"""Pure: what a look at one kind of causes has found."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from orgs.alert_terms import AlertKind

# Details of an end.
EXPIRED, EXTENDED, DELETED, DISCONNECTED, PAUSED = "expired", "extended", "deleted", "disconnected", "paused"
# The detail of credentials that came from a sign-in.
SIGN_IN_NEEDED = "sign-in needed"


@dataclass(frozen=True, slots=True)
class Cause:
    org_id: UUID
    kind: AlertKind
    key: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A cause that is there now. `since`: None where nobody noted it. The texts are English and have no secret."""

    cause: Cause
    label: str
    detail: str = ""
    level: int = 1
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Alerts of the kind that have neither a fact nor are undecided are over. `ends`: how, where that is known."""

    facts: list[Fact] = field(default_factory=list)
    undecided: Set[Cause] = frozenset()
    ends: dict[Cause, str] = field(default_factory=dict)
