"""The cast's first organization with what credentials hang on, and a look at the epochs."""

from __future__ import annotations

import pytest

from gateway.coordination import backend
from tests.factories.cast import Cast
from tests.factories.credentials import Setting, make_setting


@pytest.fixture
def setting(cast: Cast) -> Setting:
    """Inside a transaction that is rolled back."""
    return make_setting(cast)


@pytest.fixture
def committed_setting(committed_cast: Cast) -> Setting:
    """Committed, for tests with threads and for what happens on commit."""
    return make_setting(committed_cast)


@pytest.fixture
def bumped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The epochs bumped during the test, in order."""
    names: list[str] = []

    class Store:
        def bump_epochs(self, bumped_names: tuple[str, ...]) -> None:
            names.extend(bumped_names)

    monkeypatch.setattr(backend, "current", Store)
    return names
