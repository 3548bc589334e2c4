"""Every test of this folder ships rows that it has just committed."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _undisturbed(undisturbed_stream: None) -> None: ...
