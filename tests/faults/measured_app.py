"""The service's own application, with a stopwatch: how late its event loop is, and how long a call waits for the store.

GET /-/figures answers what was measured since the last time it was asked; everything else is the service's.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")

from gateway.asgi import application as service
from tests.faults.hang_figures import FIGURES_PATH

EVERY_S = 0.005
SCHEDULER = Path("/proc/self/schedstat")  # of the main thread: time on a core, time waiting for one, both in ns


def _starved_s() -> float:
    """Seconds for which the main thread, which runs the loop, has waited for a core of the machine (Linux)."""
    return int(SCHEDULER.read_text().split()[1]) / 1e9 if SCHEDULER.exists() else 0.0


class Stopwatch:
    """The worst of everything since `taken` was last asked, in seconds."""

    def __init__(self) -> None:
        self.lateness_s = self.own_lateness_s = self.wait_s = 0.0
        self.admissions = self.local = 0

    def taken(self) -> dict[str, float]:
        """The figures; counting begins anew."""
        figures = dict(vars(self))
        self.__init__()  # type: ignore[misc]
        return figures

    async def watch_loop(self) -> None:
        """Measure until cancelled: a timer that fires late says that something held the loop.

        The loop's own lateness leaves out the time for which its thread could have run and had no core: that is the
        load of the machine. To wait for a lock, a thread or a server is its own.
        """
        loop, starved_s = asyncio.get_running_loop(), _starved_s()
        while True:
            due_s = loop.time() + EVERY_S
            await asyncio.sleep(EVERY_S)
            late_s, before_s, starved_s = loop.time() - due_s, starved_s, _starved_s()
            self.lateness_s = max(self.lateness_s, late_s)
            self.own_lateness_s = max(self.own_lateness_s, late_s - (starved_s - before_s))

    def watch_store(self) -> None:
        """Measure each admission."""
        from gateway.coordination import backend

        store: Any = backend.current()
        admit = store.admit

        async def measured(rule: object, key: str, epochs: Sequence[str]) -> Any:
            began_s = time.perf_counter()
            admission = await admit(rule, key, epochs)
            self.wait_s = max(self.wait_s, time.perf_counter() - began_s)
            self.admissions += 1
            self.local += admission.epochs is None
            return admission

        store.admit = measured


stopwatch = Stopwatch()
_watching: set[asyncio.Task[None]] = set()


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Dispatch one scope."""
    if scope["type"] == "lifespan":
        stopwatch.watch_store()
        _watching.add(asyncio.ensure_future(stopwatch.watch_loop()))
    elif scope.get("path") == FIGURES_PATH:
        body = json.dumps(stopwatch.taken()).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    await service(scope, receive, send)
