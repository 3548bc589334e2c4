"""Whether objects go away by themselves, or only when garbage is collected."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

PATIENCE_S = 60.0  # a thread drops its last piece of work a moment after the event loop has the result


@contextmanager
def freed_without_collection(*kinds: type) -> Iterator[None]:
    """Of what is made inside the block, nothing of these `kinds` is left behind it.

    Objects that only a collection frees make collections frequent, and each holds up every call in the process.
    """
    with _without_collection():
        yield
        left = _left(kinds)
    assert left == []


@asynccontextmanager
async def freed_soon_without_collection(*kinds: type) -> AsyncIterator[None]:
    """The same for work that other threads have a part in: they get PATIENCE_S to let go of it."""
    with _without_collection():
        yield
        give_up_at_s = time.monotonic() + PATIENCE_S
        while (left := _left(kinds)) and time.monotonic() < give_up_at_s:
            del left
            await asyncio.sleep(0.01)
    assert left == []


@contextmanager
def _without_collection() -> Iterator[None]:
    gc.disable()
    gc.freeze()  # objects made before are not looked at again: going through all takes longer than most tests
    try:
        yield
    finally:
        gc.enable()


def _left(kinds: tuple[type, ...]) -> list[object]:
    return [each for each in gc.get_objects() if type(each) in kinds]  # isinstance would wake lazy objects
