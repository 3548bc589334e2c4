"""Pure: what people are told of an alert after a look, if anything. Spec: D166 · docs/decisions/0096

A cause begins at most once in BEGINS_APART. A cause that flaps is over once it has been absent for OVER_AFTER.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from orgs.alert_terms import BEGINS_APART, OVER_AFTER, AlertKind, Moment
from proxy.control_plane.alerts.facts import Fact

# Of the other kinds, one look shows that they are over.
_COME_AND_GO = frozenset({AlertKind.VENDOR_DOWN, AlertKind.CREDENTIAL_REJECTED})


class AlertState(Protocol):
    """The columns of an alert that decide."""

    kind: str
    label: str
    detail: str
    level: int
    began_at: datetime
    ended_at: datetime | None
    absent_since: datetime | None
    told_level: int
    told_at: datetime | None


def note_presence(alert: AlertState, fact: Fact, now: datetime) -> None:
    if alert.ended_at is not None:
        # An end that nobody was told of yet did not happen.
        if not alert.told_level:
            alert.began_at = fact.since or now
        alert.ended_at = None
    alert.absent_since = None
    alert.label, alert.detail, alert.level = fact.label, fact.detail, fact.level


def note_absence(alert: AlertState, now: datetime, detail: str | None = None) -> None:
    """`detail`: how it ended, where that is known."""
    if alert.ended_at is not None:
        return
    alert.absent_since = alert.absent_since or now
    patience = OVER_AFTER if AlertKind(alert.kind) in _COME_AND_GO else timedelta()
    if now - alert.absent_since >= patience:
        alert.ended_at = alert.absent_since
        alert.detail = alert.detail if detail is None else detail


def next_message(alert: AlertState, now: datetime) -> Moment | None:
    """The message that is due now; the alert then counts as told."""
    if alert.ended_at is not None:
        if not alert.told_level:
            return None
        alert.told_level = 0
        return Moment.END
    if alert.absent_since is not None:
        return None
    if not alert.told_level:
        if alert.told_at is not None and now - alert.told_at < BEGINS_APART:
            return None
        alert.told_level, alert.told_at = alert.level, now
        return Moment.BEGIN
    if alert.level > alert.told_level:
        alert.told_level = alert.level
        return Moment.WORSE
    return None


def keep_silent(alert: AlertState) -> None:
    """The kind is muted: people know of nothing."""
    alert.told_level = 0
