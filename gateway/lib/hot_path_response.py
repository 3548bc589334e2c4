from __future__ import annotations

from django.http import HttpResponse


class HotPathResponse(HttpResponse):
    """200, a body of bytes, and headers in a plain mapping: no cookies, no charset, nothing to close."""

    def __init__(self, body: bytes, *, headers: dict[str, str]) -> None:
        # HttpResponse.__init__ is not called: it takes longer than the rest of the view.
        self.headers = headers  # type: ignore[assignment]
        self._body = body

    @property
    def content(self) -> bytes:  # type: ignore[override]
        return self._body
