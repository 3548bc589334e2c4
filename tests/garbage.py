"""Whether objects go away by themselves, or only when garbage is collected."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def freed_without_collection(*kinds: type) -> Iterator[None]:
    """Of what is made inside the block, nothing of these `kinds` is left behind it.

    What goes away only by collection makes collections frequent, and each holds up every call in the process.
    """
    gc.collect()
    gc.disable()
    try:
        before = {id(each) for each in _alive(kinds)}
        yield
        left = [each for each in _alive(kinds) if id(each) not in before]
    finally:
        gc.enable()
    assert left == []


def _alive(kinds: tuple[type, ...]) -> list[object]:
    return [each for each in gc.get_objects() if type(each) in kinds]  # isinstance would wake lazy objects
