"""An answer of a vendor while it comes: filled by its connection, read by the call that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Hashable, Iterator
from enum import IntEnum

from gateway.lib import body_budgets
from gateway.lib.byte_budget import BudgetExhausted, Hold
from proxy.outcomes import VendorFault
from proxy.vendors import errors, turns
from proxy.vendors.content_coding import STEP_BYTES, BadCoding, Gunzip

FREE_BYTES = 64 * 1024  # from here on, undoing a packed body waits for its turn: it may grow a thousandfold
UNREAD_BYTES = 256 * 1024  # of an event stream; the vendor waits until its reader is done with them
STEP_OF_ROOM_BYTES = 256 * 1024  # of a body that does not say its length


class Until(IntEnum):
    """What a reader waits for."""

    HEAD = 0
    MORE = 1
    END = 2


class VendorAnswer:
    """Status and headers of an answer; the body is read once, whole or in chunks.

    Its connection writes `headers` (by lower-case name), `pieces` of the body not taken yet and their total `size` in
    bytes so far, as they came, and says when the head or the whole of it is there, or what went wrong.
    A packed body (`gunzip`) is undone while it is read, no further than `max_bytes`; `deadline` is in the loop's time.

    The reader, who knows the owner, takes what exceeds FREE_BYTES from the budget of answers; until then the connection
    reads no more of a body. `release` gives it back when the exchange is over.
    """

    __slots__ = (
        *("status", "is_event_stream", "headers", "pieces", "size", "fault", "has_head", "is_complete"),
        *("gunzip", "deadline", "_waiter", "_until", "_loop", "_taken_bytes", "_held_back", "_max_bytes"),
        *("_unpacked_bytes", "_undone_bytes", "_hold", "_granted_bytes"),
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, *, max_bytes: int, deadline: float) -> None:
        self.status = 0
        self.gunzip: Gunzip | None = None
        self._max_bytes = max_bytes
        self.deadline = deadline
        self._unpacked_bytes = 0
        self._undone_bytes = 0  # packed or unpacked: one of the two may be next to nothing
        self.is_event_stream = False
        self._loop = loop
        self.headers: dict[bytes, bytes] = {}
        self.pieces: list[bytes] = []
        self.size = self._taken_bytes = 0
        self._held_back: asyncio.Transport | None = None
        self._hold: Hold | None = None
        self._granted_bytes = FREE_BYTES
        self.fault: errors.VendorProblem | None = None
        self.has_head = self.is_complete = False
        self._waiter: asyncio.Future[None] | None = None
        self._until = Until.HEAD

    @property
    def is_whole(self) -> bool:
        """All of it has come, and nothing was wrong with it."""
        return self.is_complete and self.fault is None

    def header(self, name: str) -> str | None:
        """One header; of several with this name the first."""
        value = self.headers.get(name.lower().encode("latin-1"))
        return None if value is None else value.decode("latin-1")

    async def body(self, owner: Hashable = None) -> bytes:
        """The whole body, decoded. `owner` is whose answer it is: see turns.

        Raises: VendorProblem past a deadline or a cap, or when it breaks off.
        """
        while not self.is_complete and self.fault is None:
            if self.size > self._granted_bytes:
                await self._make_room(owner, self._expected_bytes())
                self.go_on()
            else:
                await self.wait(Until.END)
        if self.fault is not None:
            raise self.fault.again()
        if self.size > FREE_BYTES:
            self._hold_of(owner).count(self.size)
        pieces, self.pieces = self.pieces, []
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self.gunzip is not None:
            body = await self._unpacked(self.gunzip, body, owner)
            self._check_unpacked(self.gunzip)
        return body

    async def chunks(self, owner: Hashable = None) -> AsyncGenerator[bytes, None]:
        """The decoded body as it comes.

        Raises: as `body`.
        """
        while True:
            if self.pieces:
                pieces, self.pieces = self.pieces, []
                self._taken_bytes = self.size
                self.go_on()
                chunk = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                yield chunk if self.gunzip is None else await self._unpacked(self.gunzip, chunk, owner)
            elif self.fault is not None:
                raise self.fault.again()
            elif self.is_complete:
                if self.gunzip is not None:
                    self._check_unpacked(self.gunzip)
                return
            else:
                await self.wait(Until.MORE)

    async def keep(self, owner: Hashable, count: int) -> None:
        """The reader of an event stream keeps `count` bytes of it now, and no others.

        Raises: VendorProblem when there is no room for them in time.
        """
        if count > FREE_BYTES:
            await self._make_room(owner, count)
        if self._hold is not None:
            self._hold.shrink_to(count)

    def release(self) -> None:
        """The exchange is over."""
        if self._hold is not None:
            self._hold.release()
            self._hold = None

    async def _make_room(self, owner: Hashable, count: int) -> None:
        try:
            async with asyncio.timeout_at(self.deadline):
                await self._hold_of(owner).grow_to(count)
        except BudgetExhausted:
            raise self._failed(_no_room()) from None
        except TimeoutError:
            raise self._failed(errors.timeout(errors.Sign.ANSWERED)) from None
        self._granted_bytes = max(self._granted_bytes, count)

    def _hold_of(self, owner: Hashable) -> Hold:
        if self._hold is None:
            self._hold = body_budgets.vendors().hold(owner)
        return self._hold

    def _expected_bytes(self) -> int:
        """Of the whole body if its length is known, else a step more than there is."""
        length = int(self.headers.get(b"content-length", b"0"))
        return length or min(self.size + STEP_OF_ROOM_BYTES, max(self.size, self._max_bytes))

    async def _unpacked(self, gunzip: Gunzip, packed: bytes, owner: Hashable) -> bytes:
        """What `packed` adds. Raises: VendorProblem."""
        found: list[bytes] = []
        size = 0
        pieces = gunzip.pieces(packed)
        try:
            while (piece := await self._next_piece(pieces, owner)) is not None:
                self._undone_bytes += max(len(piece), STEP_BYTES)
                self._unpacked_bytes += len(piece)
                if self._unpacked_bytes > self._max_bytes:
                    raise self._failed(errors.bad_response("it is too large"))
                found.append(piece)
                size += len(piece)
                if size > max(FREE_BYTES, self._hold.bytes if self._hold is not None else 0):
                    await self._make_room(owner, size + STEP_OF_ROOM_BYTES)
        except BadCoding:
            raise self._failed(errors.bad_response("it is not encoded as it says")) from None
        except TimeoutError:
            raise self._failed(errors.timeout(errors.Sign.ANSWERED)) from None
        return found[0] if len(found) == 1 else b"".join(found)

    async def _next_piece(self, pieces: Iterator[bytes], owner: Hashable) -> bytes | None:
        if self._undone_bytes < FREE_BYTES:
            return next(pieces, None)
        async with turns.current().turn(owner, self.deadline):
            return next(pieces, None)

    def _check_unpacked(self, gunzip: Gunzip) -> None:
        if not gunzip.is_complete:
            raise self._failed(errors.bad_response("it is not encoded as it says"))

    def _failed(self, fault: errors.VendorProblem) -> errors.VendorProblem:
        """To be raised; the connection is not trusted any more."""
        self.fault = fault
        return fault.again()

    def hold_back(self, transport: asyncio.Transport) -> None:
        """Read no more for now, if the reader of an event stream is far behind, or a body needs room."""
        if self.is_event_stream:
            is_enough = self.size - self._taken_bytes > UNREAD_BYTES
        else:
            is_enough = self.size > self._granted_bytes and not self.is_complete
        if is_enough and self._held_back is None:
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
            or (until is Until.END and self.size > self._granted_bytes)
            or (until is Until.HEAD and self.has_head)
            or (until is Until.MORE and self.pieces)
        ):
            waiter.set_result(None)


def _no_room() -> errors.VendorProblem:
    """The call ran, and its answer cannot be kept; whether it may be sent again is for the caller to judge."""
    text = "The vendor answered, and there is no room for its answer: too many large answers are on their way."
    return errors.VendorProblem(VendorFault.UNAVAILABLE, text)
