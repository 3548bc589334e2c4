"""An answer of a vendor while it comes: filled by its connection, read by the call that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from enum import IntEnum

from proxy.vendors import errors

UNREAD_BYTES = 256 * 1024  # of an event stream; the vendor waits until its reader is done with them


class Until(IntEnum):
    """What a reader waits for."""

    HEAD = 0
    MORE = 1
    END = 2


class VendorAnswer:
    """Status and headers of an answer; the body is read once, whole or in chunks.

    Its connection writes `headers` (by lower-case name), `pieces` of the decoded body not taken yet and their total
    `size` in bytes so far, and says when the head or the whole of it is there, or what went wrong.
    """

    __slots__ = (
        *("status", "is_event_stream", "headers", "pieces", "size", "fault", "has_head", "is_complete"),
        *("_waiter", "_until", "_loop", "_taken_bytes", "_held_back"),
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.status = 0
        self.is_event_stream = False
        self._loop = loop
        self.headers: dict[bytes, bytes] = {}
        self.pieces: list[bytes] = []
        self.size = self._taken_bytes = 0
        self._held_back: asyncio.Transport | None = None
        self.fault: errors.VendorProblem | None = None
        self.has_head = self.is_complete = False
        self._waiter: asyncio.Future[None] | None = None
        self._until = Until.HEAD

    def header(self, name: str) -> str | None:
        """One header; of several with this name the first."""
        value = self.headers.get(name.lower().encode("latin-1"))
        return None if value is None else value.decode("latin-1")

    async def body(self) -> bytes:
        """The whole body, decoded.

        Raises: VendorProblem past a deadline or a cap, or when it breaks off.
        """
        if not self.is_complete and self.fault is None:
            await self.wait(Until.END)
        if self.fault is not None:
            raise self.fault.again()
        pieces, self.pieces = self.pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The decoded body as it comes.

        Raises: as `body`.
        """
        while True:
            if self.pieces:
                pieces, self.pieces = self.pieces, []
                self._taken_bytes = self.size
                self.go_on()
                yield b"".join(pieces)
            elif self.fault is not None:
                raise self.fault.again()
            elif self.is_complete:
                return
            else:
                await self.wait(Until.MORE)

    def hold_back(self, transport: asyncio.Transport) -> None:
        """Read no more for now, if the reader of an event stream is far behind."""
        if self.size - self._taken_bytes > UNREAD_BYTES and self.is_event_stream:
            self._held_back = transport
            transport.pause_reading()

    def go_on(self) -> None:
        """Read again, if that was held back."""
        if self._held_back is not None:
            self._held_back.resume_reading()
            self._held_back = None

    async def wait(self, until: Until) -> None:
        """Until that is there, or the answer has failed."""
        self._until = until
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def wake(self) -> None:
        """Let the reader go on, if what it waits for is there: once a packet at most, and not for every piece."""
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        until = self._until
        if (
            self.is_complete
            or self.fault is not None
            or (until is Until.HEAD and self.has_head)
            or (until is Until.MORE and self.pieces)
        ):
            waiter.set_result(None)
