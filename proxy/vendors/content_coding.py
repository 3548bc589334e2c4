"""Pure: gzip undone piece by piece, so that whoever reads decides how much of it, and when."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

_GZIP = 16 + zlib.MAX_WBITS
STEP_BYTES = 4 * 1024  # packed: a millisecond's work at most, even if they are all headers of empty blocks
PIECE_BYTES = 64 * 1024


class BadCoding(ValueError):
    """It is not one gzip member, whole and with nothing behind it."""


class Gunzip:
    """One gzip member. A body without a single byte is taken as it is."""

    __slots__ = ("_inflate", "_is_untouched")

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP)
        self._is_untouched = True

    @property
    def is_complete(self) -> bool:
        """Whether the member has ended, or never began."""
        return self._is_untouched or self._inflate.eof

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """What `data` adds, at most PIECE_BYTES at a time. Nothing is unpacked before it is asked for.

        Of no piece more than STEP_BYTES are read; what adds nothing is an empty one.   Raises: BadCoding.
        """
        self._is_untouched = self._is_untouched and not data
        for start in range(0, len(data), STEP_BYTES):
            rest, piece = data[start : start + STEP_BYTES], b""
            while rest or len(piece) == PIECE_BYTES:  # a full piece may have left some within
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
