"""CSV downloads of any length: a few at once, each streamed page by page with constant memory. Spec: D84"""

from __future__ import annotations

import time
import uuid
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import structlog
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.cache import patch_vary_headers

from gateway.lib import clock
from gateway.lib.csv_text import MEDIA_TYPE, encode_rows
from gateway.lib.database_threads import with_own_connection
from gateway.lib.gzip_stream import accepts_gzip, gzip_parts
from gateway.lib.sentences import sentence
from gateway.middleware.concurrency_limit import release_slot_early
from gateway.web.organization_slots import OrganizationSlots

log = structlog.get_logger(__name__)
TOTAL_HEADER = "X-Total-Count"
# Of one export. A million rows take a few minutes; a slow reader is cut off after it.
LONGEST_S = 900.0

# A reader that is slower than this holds its slot for GRACE_S, and then only as long as it keeps this pace.
SLOWEST_BYTES_PER_S = 20_000
GRACE_S = 60.0

exports = OrganizationSlots(
    size=settings.CONCURRENT_EXPORTS,
    of_owner=settings.CONCURRENT_EXPORTS_OF_ORGANIZATION,
    retry_after_s=10,  # most exports end earlier
    share_taken=sentence("Other exports of this organization are still running. Try again when one is done."),
    slots_taken=sentence("Too many exports are running. Try again in a moment."),
)


class ExportBroken(Exception):
    """Ends a body before its end, so that the server closes the connection and the reader sees it is incomplete."""


@dataclass(frozen=True, slots=True)
class CsvTable:
    """`total` rows as they were counted; `pages` asks the database once for each page."""

    name: str
    header: Sequence[str]
    total: int
    pages: Iterator[list[list[str]]]

    def parts(self) -> Iterator[bytes]:
        yield encode_rows([self.header])
        for page in self.pages:
            yield encode_rows(page)


class _ExportSlot:
    """A taken slot of `exports`. `release` gives it back, at the latest when nothing refers to it any more.

    Raises: ShareTaken; SlotsTaken.
    """

    def __init__(self, organization_id: uuid.UUID) -> None:
        exports.require(organization_id)
        # A response whose client left early is never sent and never closed. A second call does nothing.
        self.release = weakref.finalize(self, exports.give_back, organization_id)
        self.release.atexit = False


class _ExportBody:
    """The parts of one body, made one at a time in the request's thread when the reader has taken the one before."""

    # Asynchronous: Django collects a synchronous iterator into a list before it sends the first part.
    def __init__(self, parts: Iterator[bytes], slot: _ExportSlot, release_page: Callable[[], None]) -> None:
        self._parts, self._slot, self._release_page = parts, slot, release_page

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises: ExportBroken."""
        # From here on the reader decides how long it takes.
        self._release_page()
        began_s, sent = time.monotonic(), 0
        try:
            while (part := await sync_to_async(self._next_part)()) is not None:
                yield part
                sent += len(part)
                if time.monotonic() - began_s > min(LONGEST_S, GRACE_S + sent / SLOWEST_BYTES_PER_S):
                    raise ExportBroken("the reader took too long")
        finally:
            self.close()

    def close(self) -> None:
        """Django calls it when the response ends in any way."""
        self._slot.release()

    def _next_part(self) -> bytes | None:
        try:
            # The thread holds a connection only while it makes a part.
            return with_own_connection(lambda: next(self._parts, None))
        except (OperationalError, InterfaceError) as fault:
            # Only the class: the driver's text may quote a statement with its values.
            log.error("export broken off", fault=type(fault).__name__)
            raise ExportBroken("the database cannot be used") from None


def csv_export(request: HttpRequest, organization_id: uuid.UUID, find: Callable[[], CsvTable]) -> StreamingHttpResponse:
    """The answer with the table that `find` returns. Raises: ShareTaken, SlotsTaken; those of `find`."""
    slot = _ExportSlot(organization_id)
    try:
        table = find()
    except BaseException:
        slot.release()
        raise
    is_gzipped = accepts_gzip(request.headers.get("Accept-Encoding", ""))
    parts = gzip_parts(table.parts()) if is_gzipped else table.parts()
    if request.method == "HEAD":
        # The server would drop the body, which would be made for nothing.
        parts = iter(())
        slot.release()
    body = _ExportBody(parts, slot, partial(release_slot_early, getattr(request, "scope", {})))
    response = StreamingHttpResponse(body, content_type=MEDIA_TYPE)
    response["Content-Disposition"] = f'attachment; filename="{table.name}-{clock.now():%Y-%m-%d}.csv"'
    response[TOTAL_HEADER] = str(table.total)
    patch_vary_headers(response, ["Accept-Encoding"])
    if is_gzipped:
        response["Content-Encoding"] = "gzip"
    return response
