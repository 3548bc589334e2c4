"""Pure: gzip undone piece by piece, never past a cap."""

from __future__ import annotations

import zlib

_GZIP = 16 + zlib.MAX_WBITS


class BadCoding(ValueError):
    """It is not one gzip member, whole and with nothing behind it."""


class TooLarge(ValueError):
    """More would come out than there is room for."""


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

    def feed(self, data: bytes, room: int) -> bytes:
        """What `data` adds, at most `room` bytes. No more than one byte beyond that is ever unpacked.

        Raises: BadCoding, TooLarge.
        """
        self._is_untouched = False
        try:
            found = self._inflate.decompress(data, room + 1)
        except zlib.error:
            raise BadCoding from None
        if len(found) > room:
            raise TooLarge
        if self._inflate.unused_data:
            raise BadCoding
        return found
