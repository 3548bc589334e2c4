"""Whether this process has been told to end: load balancers should send it nothing more.

The server that runs us closes its listener soon after the signal, so a balancer has little time to ask.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

_draining = threading.Event()


def is_draining() -> bool:
    """Whether SIGTERM has come."""
    return _draining.is_set()


def begin() -> None:
    """From now on GET /ready answers 503."""
    _draining.set()


def forget() -> None:
    """As a process that has just started."""
    _draining.clear()


def begin_on_sigterm() -> None:
    """SIGTERM begins the draining and then does what it did before. Outside the main thread nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        return
    previous = signal.getsignal(signal.SIGTERM)

    def handle(number: int, frame: FrameType | None) -> None:
        begin()
        if callable(previous):
            previous(number, frame)

    if callable(previous):  # the server's own handler: without one the signal ends the process at once
        signal.signal(signal.SIGTERM, handle)
