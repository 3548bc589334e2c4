"""Pure: gzip of a body that is sent part by part, for clients that accept it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

LEVEL = 6
_GZIP_WRAPPER = 16 + zlib.MAX_WBITS  # the way zlib is asked for a gzip header
_NEVER = re.compile(r"q\s*=\s*0(\.0{0,3})?\s*\Z", re.I)


def accepts_gzip(accept_encoding: str) -> bool:
    """RFC 9110 12.5.3: named, or meant by `*`, with a weight above 0."""
    wanted: dict[str, bool] = {}
    for each in accept_encoding.split(","):
        name, _, weight = each.partition(";")
        wanted[name.strip().lower()] = not _NEVER.match(weight.strip())
    return wanted.get("gzip", wanted.get("x-gzip", wanted.get("*", False)))


def gzip_parts(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Each part can be unpacked as soon as it arrives."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, _GZIP_WRAPPER)
    for part in parts:
        yield packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()
