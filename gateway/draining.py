"""Whether this process got SIGTERM: load balancers should send no more requests."""

from __future__ import annotations

import signal
import threading
from types import FrameType

# uvicorn closes its listener soon after the signal, so load balancers have little time to ask.
_draining = threading.Event()


def is_draining() -> bool:
    return _draining.is_set()


def begin() -> None:
    """From now on GET /ready answers 503."""
    _draining.set()


def begin_on_sigterm() -> None:
    """Chain `begin` before the present SIGTERM handler. Outside the main thread nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        return
    previous = signal.getsignal(signal.SIGTERM)

    def handle(number: int, frame: FrameType | None) -> None:
        begin()
        if callable(previous):
            previous(number, frame)

    if callable(previous):  # without uvicorn's handler the signal ends the process at once
        signal.signal(signal.SIGTERM, handle)
