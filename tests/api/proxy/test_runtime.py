"""A process has one set of the objects that serve its calls."""

from __future__ import annotations

import threading

from proxy import runtime


async def test_one_thread_writes_call_records() -> None:
    before = {thread.ident for thread in threading.enumerate()}
    live = runtime.current()
    try:
        begun = [each for each in threading.enumerate() if each.ident not in before and each.name == "audit-writer"]
        assert len(begun) == 1
    finally:
        await runtime.stop()
    assert not any(thread.is_alive() for thread in begun)
    assert live.audit._closed
