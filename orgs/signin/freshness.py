"""When the identity provider last vouched for the person of a session, remembered in the session itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase

from gateway.lib import clock

_KEY = "provider_word_at"  # seconds since the epoch
_SILENT_KEY = "provider_silent_at"


def note_word(session: SessionBase, at: datetime | None = None) -> None:
    """The provider vouched `at` that moment, now by default."""
    session[_KEY] = (at or clock.now()).timestamp()


def word_at(session: SessionBase) -> datetime:
    """When it last did; long ago for a session that does not know."""
    return _moment(session, _KEY)


def note_silence(session: SessionBase) -> None:
    """The browser was sent to the provider, which did not answer us."""
    session[_SILENT_KEY] = clock.now().timestamp()


def is_silent(session: SessionBase) -> bool:
    """Whether it did not answer just now: the browser is not sent there again at once."""
    return clock.now() - _moment(session, _SILENT_KEY) < timedelta(seconds=settings.PROVIDER_ASKED_EVERY_S)


def _moment(session: SessionBase, key: str) -> datetime:
    found: Any = session.get(key)
    return datetime.fromtimestamp(found if isinstance(found, int | float) else 0, UTC)
