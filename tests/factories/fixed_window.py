"""A fixed window of django-ratelimit that does not end during a test."""

from __future__ import annotations

import time

import pytest


def hold_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every window of the library end a minute from now: a test that meets an end would count anew."""
    ends_at_s = int(time.time()) + 60
    monkeypatch.setattr("django_ratelimit.core._get_window", lambda value, period: ends_at_s)
