"""Whether this process is stopping, and the calls that must be told when their time is over.   docs/decisions/0079"""

from __future__ import annotations

import threading
from collections.abc import Callable

# The words for a request whose time is over. On every route.
CUT_OFF = "The gateway is stopping, and this took too long. A call may have happened at the vendor."
# Imported by uvicorn before the application: no Django here.
_draining = threading.Event()
_calls_ended = threading.Event()
_calls: set[Callable[[], object]] = set()


def is_draining() -> bool:
    """Whether the process got a stop signal: /ready answers 503, and each answer closes its connection."""
    return _draining.is_set()


def begin() -> None:
    _draining.set()


def have_calls_ended() -> bool:
    """Whether the time to finish is over. A call that is cancelled from now on was cut off."""
    return _calls_ended.is_set()


def at_end(cut_off: Callable[[], object]) -> None:
    """Call `cut_off` in the event loop when the time of running calls is over, unless `forget` comes first."""
    if _calls_ended.is_set():
        cut_off()
    else:
        _calls.add(cut_off)


def forget(cut_off: Callable[[], object]) -> None:
    _calls.discard(cut_off)


def end_calls() -> None:
    """Cut off the calls that are left."""
    _calls_ended.set()
    while _calls:
        _calls.pop()()
