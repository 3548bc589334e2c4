"""A vendor's answer while it arrives: written by its connection, read by the call that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Hashable, Iterator
from enum import IntEnum

from gateway.lib import body_budgets
from gateway.lib.byte_budget import BudgetExhausted, Reservation
from proxy.outcomes import VendorFault
from proxy.vendors import errors, fair_scheduler
from proxy.vendors.content_coding import STEP_BYTES, BadCoding, Gunzip

FREE_BYTES = 64 * 1024  # a longer compressed body is decompressed in slots: it may grow a thousandfold
UNREAD_BYTES = 256 * 1024  # of an event stream, before the connection stops reading


class WaitFor(IntEnum):
    """The part of the answer that a reader waits for."""

    HEAD = 0
    MORE = 1
    END = 2


class VendorResponse:
    """Status and headers of an answer; the body is read once, whole or in chunks.

    The connection writes `headers` (by lower-case name), the `pieces` of the body that were not read yet, and the bytes
    received of it so far (`size`). It sets `has_head`, `is_complete` or `fault`. A compressed body (`gunzip`) is
    decompressed by the reader, up to `max_bytes`. `deadline` is in the loop's time.

    A body of more than FREE_BYTES reserves bytes of the vendors' budget, one step ahead of the bytes that have arrived.
    The reader reserves the first step, because it knows the owner. Without free bytes the connection stops reading and
    the reader waits.
    """

    __slots__ = (
        *("status", "is_event_stream", "headers", "pieces", "size", "fault", "has_head", "is_complete"),
        *("gunzip", "deadline", "_waiter", "_until", "_loop", "_taken_bytes", "_paused_transport", "_max_bytes"),
        *("_unpacked_bytes", "_work_bytes", "_reservation", "_granted_bytes"),
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, *, max_bytes: int, deadline: float) -> None:
        self.status = 0
        self.gunzip: Gunzip | None = None
        self._max_bytes = max_bytes
        self.deadline = deadline
        self._unpacked_bytes = 0
        # Work done so far: for each piece the larger of its packed size (counted as STEP_BYTES) and its unpacked size;
        # either may be almost 0.
        self._work_bytes = 0
        self.is_event_stream = False
        self._loop = loop
        self.headers: dict[bytes, bytes] = {}
        self.pieces: list[bytes] = []
        self.size = self._taken_bytes = 0
        self._paused_transport: asyncio.Transport | None = None
        self._reservation: Reservation | None = None
        self._granted_bytes = FREE_BYTES
        self.fault: errors.VendorProblem | None = None
        self.has_head = self.is_complete = False
        self._waiter: asyncio.Future[None] | None = None
        self._until = WaitFor.HEAD

    @property
    def is_whole(self) -> bool:
        """The answer arrived completely and without a fault."""
        return self.is_complete and self.fault is None

    def header(self, name: str) -> str | None:
        """One header; of several with this name the first."""
        value = self.headers.get(name.lower().encode("latin-1"))
        return None if value is None else value.decode("latin-1")

    async def body(self, owner: Hashable = None) -> bytes:
        """The whole decoded body. `owner`: see byte_budget and fair_scheduler.

        Raises: VendorProblem past a deadline or limit, or when the connection breaks.
        """
        while not self.is_complete and self.fault is None:
            if self.size > self._granted_bytes:
                await self._reserve(owner, self.size, self._most_bytes())
                self.resume_reading()
            else:
                await self.wait(WaitFor.END)
        if self.fault is not None:
            raise self.fault.copy()
        if self.size > FREE_BYTES:
            self._reservation_of(owner).settle(self.size)
        pieces, self.pieces = self.pieces, []
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self.gunzip is not None:
            body = await self._unpacked(self.gunzip, body, owner)
            self._check_unpacked(self.gunzip)
        return body

    async def chunks(self, owner: Hashable = None) -> AsyncGenerator[bytes, None]:
        """The decoded body as it arrives. Raises: as `body`."""
        while True:
            if self.pieces:
                pieces, self.pieces = self.pieces, []
                self._taken_bytes = self.size
                self.resume_reading()
                chunk = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                yield chunk if self.gunzip is None else await self._unpacked(self.gunzip, chunk, owner)
            elif self.fault is not None:
                raise self.fault.copy()
            elif self.is_complete:
                if self.gunzip is not None:
                    self._check_unpacked(self.gunzip)
                return
            else:
                await self.wait(WaitFor.MORE)

    async def retain(self, owner: Hashable, count: int) -> None:
        """The reader of an event stream keeps `count` bytes of it. Raises: VendorProblem without free bytes in time."""
        if count > FREE_BYTES:
            await self._reserve(owner, count, count)
        if self._reservation is not None:
            self._reservation.shrink_to(count)

    def release(self) -> None:
        """Free the reserved bytes at the end of the exchange."""
        if self._reservation is not None:
            self._reservation.release()
            self._reservation = None

    async def _reserve(self, owner: Hashable, size: int, most: int) -> None:
        reservation = self._reservation_of(owner)
        try:
            async with asyncio.timeout_at(self.deadline):
                await reservation.grow(size, most)
        except BudgetExhausted:
            raise self._fail(_budget_exhausted()) from None
        except TimeoutError:
            raise self._fail(errors.timeout(errors.Evidence.RESPONDED)) from None
        self._granted_bytes = reservation.bytes

    def _try_reserve_more(self) -> bool:
        """Reserve another step if it is free, without waking the reader."""
        if self._reservation is None or not self._reservation.try_grow(self.size, self._most_bytes()):
            return False
        self._granted_bytes = self._reservation.bytes
        return True

    def _reservation_of(self, owner: Hashable) -> Reservation:
        if self._reservation is None:
            self._reservation = body_budgets.vendors().new_reservation(owner)
        return self._reservation

    def _most_bytes(self) -> int:
        """The declared length of the body, else the limit."""
        return int(self.headers.get(b"content-length", b"0")) or self._max_bytes

    async def _unpacked(self, gunzip: Gunzip, packed: bytes, owner: Hashable) -> bytes:
        """The decompressed bytes of `packed`. Raises: VendorProblem."""
        found: list[bytes] = []
        size = 0
        pieces = gunzip.pieces(packed)
        try:
            while (piece := await self._next_piece(pieces, owner)) is not None:
                self._work_bytes += max(len(piece), STEP_BYTES)
                self._unpacked_bytes += len(piece)
                if self._unpacked_bytes > self._max_bytes:
                    raise self._fail(errors.bad_response("it is too large"))
                found.append(piece)
                size += len(piece)
                if size > max(FREE_BYTES, self._reservation.bytes if self._reservation is not None else 0):
                    await self._reserve(owner, size, self._max_bytes)
        except BadCoding:
            raise self._fail(errors.bad_response("its encoding does not match its headers")) from None
        except TimeoutError:
            raise self._fail(errors.timeout(errors.Evidence.RESPONDED)) from None
        return found[0] if len(found) == 1 else b"".join(found)

    async def _next_piece(self, pieces: Iterator[bytes], owner: Hashable) -> bytes | None:
        if self._work_bytes < FREE_BYTES:
            return next(pieces, None)
        async with fair_scheduler.current().slot(owner, self.deadline):
            return next(pieces, None)

    def _check_unpacked(self, gunzip: Gunzip) -> None:
        if not gunzip.is_complete:
            raise self._fail(errors.bad_response("its encoding does not match its headers"))

    def _fail(self, fault: errors.VendorProblem) -> errors.VendorProblem:
        """The fault to raise. The connection is not reused."""
        self.fault = fault
        return fault.copy()

    def pause_reading(self, transport: asyncio.Transport) -> None:
        """Pause reading if the reader of an event stream is far behind, or a body needs room."""
        if self._paused_transport is not None:
            return
        if self.is_event_stream:
            is_enough = self.size - self._taken_bytes > UNREAD_BYTES
        else:
            is_enough = self.size > self._granted_bytes and not self.is_complete and not self._try_reserve_more()
        if is_enough:
            self._paused_transport = transport
            transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again after a pause."""
        if self._paused_transport is not None:
            self._paused_transport.resume_reading()
            self._paused_transport = None

    async def wait(self, until: WaitFor) -> None:
        """Wait for `until`, or for a fault."""
        self._until = until
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def notify(self) -> None:
        """Wake the reader if its condition holds: at most once for each packet, and not for each piece."""
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        until = self._until
        if (
            self.is_complete
            or self.fault is not None
            or (until is WaitFor.END and self.size > self._granted_bytes)
            or (until is WaitFor.HEAD and self.has_head)
            or (until is WaitFor.MORE and self.pieces)
        ):
            waiter.set_result(None)


def _budget_exhausted() -> errors.VendorProblem:
    """The call ran, and its answer cannot be kept; whether it may be sent again is for the caller to judge."""
    text = "The vendor responded, but there is no room for its response: too many large responses are in progress."
    return errors.VendorProblem(VendorFault.UNAVAILABLE, text)
