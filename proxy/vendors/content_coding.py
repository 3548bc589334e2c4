"""Pure: incremental gzip decompression; the reader decides how much is decompressed, and when."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

_GZIP = 16 + zlib.MAX_WBITS
STEP_BYTES = 4 * 1024  # compressed: at most a millisecond's work, even for a series of empty blocks
PIECE_BYTES = 64 * 1024  # decompressed, per step


class BadCoding(ValueError):
    """Anything but one complete gzip member without trailing data."""


class Gunzip:
    """One gzip member. An empty body is accepted as it is."""

    __slots__ = ("_inflate", "_is_untouched")

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP)
        self._is_untouched = True

    @property
    def is_complete(self) -> bool:
        return self._is_untouched or self._inflate.eof

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Lazy; each piece comes from at most STEP_BYTES of `data`, and may be empty. Raises: BadCoding."""
        self._is_untouched = self._is_untouched and not data
        for start in range(0, len(data), STEP_BYTES):
            rest, piece = data[start : start + STEP_BYTES], b""
            while rest or len(piece) == PIECE_BYTES:  # after a full piece, zlib may hold more
                piece = self._piece(rest)
                rest = self._inflate.unconsumed_tail
                yield piece

    def _piece(self, packed: bytes) -> bytes:
        try:
            piece = self._inflate.decompress(packed, PIECE_BYTES)
        except zlib.error:
            raise BadCoding from None
        if self._inflate.unused_data:
            raise BadCoding
        return piece
