"""Fixtures of the tests of the logs."""

from __future__ import annotations

from typing import Any

import pytest

from audit.stream_position import ReadableBelow
from tests.api.audit.undisturbed import bound


@pytest.fixture
def undisturbed_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions of other databases hold no row back. test_stream.py does without it, as production does."""
    monkeypatch.setattr(bound, "reached", 0)

    def as_postgresql(self: ReadableBelow, compiler: Any, connection: Any) -> tuple[str, tuple[object, ...]]:
        return bound.as_postgresql()

    monkeypatch.setattr(ReadableBelow, "as_postgresql", as_postgresql)
