"""The cast's first organization with what credentials hang on."""

from __future__ import annotations

import pytest

from tests.factories.cast import Cast
from tests.factories.credentials import Setting, make_setting


@pytest.fixture
def setting(cast: Cast) -> Setting:
    """Inside a transaction that is rolled back."""
    return make_setting(cast)
