"""Pure: what an event type of the admin log did to what, for schemas that have words for it."""

from __future__ import annotations

from enum import Enum

_CREATED = frozenset({"accepted", "added", "claimed", "created", "granted", "joined"})
_DELETED = frozenset({"cleared", "deleted", "released", "removed", "revoked"})


class Change(Enum):
    CREATION = "creation"
    DELETION = "deletion"
    UPDATE = "update"


def noun_of(event_type: str) -> str:
    """member.role_changed: member."""
    return event_type.partition(".")[0]


def change_of(event_type: str) -> Change:
    """By the last word of the past verb: team.member_added is a creation."""
    verb = event_type.rpartition(".")[2].rpartition("_")[2]
    if verb in _CREATED:
        return Change.CREATION
    return Change.DELETION if verb in _DELETED else Change.UPDATE
