"""Windows of rate limits that a test has to itself."""

from __future__ import annotations

import time
import uuid

import pytest

from gateway.web import rate


def hold_window(monkeypatch: pytest.MonkeyPatch, ends_in_s: int = 60) -> None:
    """Let every window of the library end only then: a test that meets an end would count anew."""
    ends_at_s = int(time.time()) + ends_in_s
    monkeypatch.setattr("django_ratelimit.core._get_window", lambda value, period: ends_at_s)


def count_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pages and API count in windows of this test: people of a whole module would fill theirs."""
    count_under, test = rate.count_under, uuid.uuid4()
    monkeypatch.setattr(rate, "count_under", lambda rule, key: count_under(rule, f"{key} {test}"))
