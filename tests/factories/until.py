"""Waiting for what another thread, process or session brings about."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 300.0  # of a loaded machine, whose other databases hold transactions open
PAUSE_S = 0.01


def until_true(condition: Callable[[], object]) -> None:
    """Asks again and again. Raises: AssertionError after PATIENCE_S."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_at, "it did not come about"
        time.sleep(PAUSE_S)
