"""The fake vendor for tests without an event loop: it runs in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.fakes.vendor import FakeVendor, running_vendor


@contextmanager
def vendor_in_thread(**settings: Any) -> Iterator[FakeVendor]:
    """A vendor on a free port of this computer until the block ends."""
    started, found = threading.Event(), []
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with running_vendor(**settings) as vendor:
            found.append(vendor)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
