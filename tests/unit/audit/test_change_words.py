"""Sentences of the admin log's events."""

from __future__ import annotations

from audit.change_words import WORDS
from audit.event_types import EventType


def test_every_event_has_its_words() -> None:
    assert WORDS.keys() == set(EventType)
