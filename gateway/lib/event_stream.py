from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from django.http import StreamingHttpResponse


class EventStream(StreamingHttpResponse):
    """Server-sent events. `on_end` is awaited once: after the last part, an abort, or a stream that never began."""

    def __init__(self, parts: AsyncIterator[bytes], *, on_end: Callable[[], Awaitable[None]]) -> None:
        super().__init__(parts, content_type="text/event-stream")
        self.on_end = on_end
        self.headers["Cache-Control"] = "no-cache, no-transform"
        self.headers["X-Accel-Buffering"] = "no"
