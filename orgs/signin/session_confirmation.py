"""The time at which the identity provider last confirmed a session's person, stored in the session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase

from gateway.lib import clock

# Seconds since the epoch.
_KEY = "provider_word_at"
_OUTAGE_KEY = "provider_silent_at"


def note_confirmation(session: SessionBase, at: datetime | None = None) -> None:
    """`at`: now by default."""
    session[_KEY] = (at or clock.now()).timestamp()


def confirmed_at(session: SessionBase) -> datetime:
    """1970 if the session has no time."""
    return _moment(session, _KEY)


def note_outage(session: SessionBase) -> None:
    """The provider did not answer the sign-in of this browser."""
    session[_OUTAGE_KEY] = clock.now().timestamp()


def is_in_outage(session: SessionBase) -> bool:
    """Whether the provider did not answer within the last PROVIDER_ASKED_EVERY_S."""
    # The browser is not sent to the provider again at once.
    return clock.now() - _moment(session, _OUTAGE_KEY) < timedelta(seconds=settings.PROVIDER_ASKED_EVERY_S)


def _moment(session: SessionBase, key: str) -> datetime:
    found: Any = session.get(key)
    return datetime.fromtimestamp(found if isinstance(found, int | float) else 0, UTC)
