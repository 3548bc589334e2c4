"""Pure: gzip undone piece by piece, never past a cap."""

from __future__ import annotations

import zlib

_GZIP = 16 + zlib.MAX_WBITS
PLAIN_BYTES = 256 * 1024  # a few hundred rows that are all the same
MOST_TIMES = 200
STEP_BYTES = 4 * 1024


class BadCoding(ValueError):
    """It is not one gzip member, whole and with nothing behind it."""


class TooLarge(ValueError):
    """More would come out than there is room for."""


class Gunzip:
    """One gzip member. A body without a single byte is taken as it is."""

    __slots__ = ("_inflate", "_is_untouched", "_packed_bytes", "_unpacked_bytes")

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP)
        self._is_untouched = True
        self._packed_bytes = self._unpacked_bytes = 0

    @property
    def is_complete(self) -> bool:
        """Whether the member has ended, or never began."""
        return self._is_untouched or self._inflate.eof

    def feed(self, data: bytes, room: int) -> bytes:
        """What `data` adds, at most `room` bytes. No more than one byte beyond that is ever unpacked.

        Past PLAIN_BYTES, what unpacks to more than MOST_TIMES its bytes is made to keep us busy, and too large.
        Raises: BadCoding, TooLarge.
        """
        self._is_untouched = False
        most = self._unpacked_bytes + room
        steps = [self._step(data[start : start + STEP_BYTES], most) for start in range(0, len(data), STEP_BYTES)]
        return steps[0] if len(steps) == 1 else b"".join(steps)

    def _step(self, data: bytes, most: int) -> bytes:
        """A little at a time: how much the rest would unpack to is not worth finding out."""
        self._packed_bytes += len(data)
        room = min(most, max(PLAIN_BYTES, MOST_TIMES * self._packed_bytes)) - self._unpacked_bytes
        try:
            found = self._inflate.decompress(data, room + 1)
        except zlib.error:
            raise BadCoding from None
        if len(found) > room:
            raise TooLarge
        if self._inflate.unused_data:
            raise BadCoding
        self._unpacked_bytes += len(found)
        return found
