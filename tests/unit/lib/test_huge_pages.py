"""The heap is moved to huge pages, and what is mostly unused stays as it is. Source: docs/decisions/0058"""

from __future__ import annotations

import ctypes
import mmap
import re
import sys
from pathlib import Path

import pytest

from gateway.lib import huge_pages
from gateway.lib.huge_pages import HUGE_PAGE_BYTES, PAGE_BYTES

MAPS = """\
00400000-00401000 rw-p 00000000 fe:01 1234                               /usr/bin/python3
01000000-01700000 rw-p 00000000 00:00 0                                  [heap]
7f0000100000-7f0000500000 rw-p 00000000 00:00 0
7f0000900000-7f0000a00000 rw-p 00000000 00:00 0                          [anon:small]
7f0001000000-7f0001400000 r--p 00000000 00:00 0
7f0002000000-7f0002400000 rw-s 00000000 00:01 99                         /dev/zero (deleted)
7ffc00000000-7ffc00800000 rw-p 00000000 00:00 0                          [stack]
"""


def test_pieces_are_whole_huge_pages_of_the_heap_and_of_unnamed_memory() -> None:
    assert list(huge_pages.pieces(MAPS)) == [0x1000000, 0x1200000, 0x1400000, 0x7F0000200000]


def test_areas_of_files_stacks_and_read_only_memory_have_none() -> None:
    others = [line for line in MAPS.splitlines() if "heap" not in line and "7f0000" not in line]
    assert list(huge_pages.pieces("\n".join(others))) == []


def test_another_system_has_no_huge_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huge_pages, "_HAS_HUGE_PAGES", False)
    assert huge_pages.collapse() == 0


def _kib(address: int, name: str) -> int:
    """A figure of the area that contains the address."""
    found = 0
    is_inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if head:
            is_inside = int(head[1], 16) <= address < int(head[2], 16)
        elif is_inside and line.startswith(f"{name}:"):
            found = int(line.split()[1])
    return found


def _address(area: mmap.mmap) -> int:
    # The view ends here: an area with a view cannot be closed.
    return ctypes.addressof(ctypes.c_char.from_buffer(area))


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages are collapsed on Linux only")
def test_used_memory_is_collapsed_with_its_content_and_unused_memory_takes_none() -> None:
    size = 4 * HUGE_PAGE_BYTES
    with (
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as used,
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as unused,
    ):
        for offset in range(0, size, PAGE_BYTES):
            used[offset : offset + 4] = offset.to_bytes(4, "big")
        for offset in range(0, size, 4 * PAGE_BYTES):
            unused[offset] = 1
        # Areas with flags of their own are never joined with their neighbours, so the figures are of one area.
        used.madvise(mmap.MADV_DONTDUMP)
        unused.madvise(mmap.MADV_DONTFORK)
        address, holes = _address(used), _address(unused)
        if not huge_pages.collapse():
            pytest.skip("this kernel collapses no pages")
        assert _kib(address, "AnonHugePages") >= 3 * HUGE_PAGE_BYTES // 1024  # four less the unaligned ends
        assert _kib(address, "Rss") == size // 1024
        assert _kib(holes, "AnonHugePages") == 0
        assert _kib(holes, "Rss") == size // 4 // 1024
        contents = [int.from_bytes(used[offset : offset + 4], "big") for offset in range(0, size, PAGE_BYTES)]
    assert contents == list(range(0, size, PAGE_BYTES))
