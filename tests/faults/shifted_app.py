"""The web application of a host whose clock is wrong by CLOCK_SHIFT_S seconds."""

from __future__ import annotations

import datetime
import os

import time_machine

_shift = datetime.timedelta(seconds=float(os.environ["CLOCK_SHIFT_S"]))
time_machine.travel(datetime.datetime.now(datetime.UTC) + _shift, tick=True).start()

from gateway.asgi import application  # noqa: E402

__all__ = ["application"]
