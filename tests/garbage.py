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
    gc.disable()
    gc.freeze()  # what is there by now is not looked at again: going through all of it takes longer than most tests
    try:
        yield
        left = [each for each in gc.get_objects() if type(each) in kinds]  # isinstance would wake lazy objects
    finally:
        gc.enable()
    assert left == []
