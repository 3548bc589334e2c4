"""Moves the memory of this process to huge pages, as far as the system can.   docs/decisions/0058

A call touches some hundred objects all over the heap. With pages of 4 KiB most of them need a translation of their
address that the processor no longer has; a huge page needs one for 2 MiB.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterator
from pathlib import Path

HUGE_PAGE_BYTES = 2 * 1024 * 1024
PAGE_BYTES = 4096
PAGES = HUGE_PAGE_BYTES // PAGE_BYTES
# A piece with more holes stays as it is: a huge page fills them, and memory grows by no more than an eighth.
LEAST_RESIDENT_PAGES = PAGES * 7 // 8
_MADV_COLLAPSE = 25  # Linux 6.1 and later; earlier ones refuse it
_HAS_HUGE_PAGES = sys.platform == "linux"
# Writable private memory without a file: the heap and what was allocated beside it.
_AREA = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw-p [0-9a-f]+ [0-9a-f]+:[0-9a-f]+ 0 *(?:\[heap\]|\[anon:.*\])?$", re.M)


def pieces(maps: str) -> Iterator[int]:
    """Pure: addresses of the whole huge pages in the areas of a /proc/<pid>/maps."""
    for area in _AREA.finditer(maps):
        first, end = int(area[1], 16), int(area[2], 16)
        yield from range(-(-first // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES, end - HUGE_PAGE_BYTES + 1, HUGE_PAGE_BYTES)


def collapse() -> int:
    """Collapse each piece that is in use, and return how many are huge pages now. From any thread.

    A piece that the system cannot collapse, for want of memory for example, stays as it is.
    """
    if not _HAS_HUGE_PAGES:
        return 0
    libc = ctypes.CDLL(None)
    resident = (ctypes.c_ubyte * PAGES)()
    done = 0
    for address in pieces(Path("/proc/self/maps").read_text(encoding="utf-8")):
        start, size = ctypes.c_void_p(address), ctypes.c_size_t(HUGE_PAGE_BYTES)
        if libc.mincore(start, size, resident) or sum(resident) < LEAST_RESIDENT_PAGES:
            continue
        done += libc.madvise(start, size, _MADV_COLLAPSE) == 0
    return done
