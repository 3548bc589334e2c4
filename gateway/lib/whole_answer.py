"""What views of the hot path answer when all is well: Django's response, without what only pages need."""

from __future__ import annotations

from django.http import HttpResponse


class WholeAnswer(HttpResponse):
    """200, a body of bytes, and headers of ours in a plain mapping: no cookies, no charset, nothing to close."""

    def __init__(self, body: bytes, *, headers: dict[str, str]) -> None:
        # Not calling HttpResponse's, which spends more on such members than the rest of the view does.
        self.headers = headers  # type: ignore[assignment]
        self._body = body

    @property
    def content(self) -> bytes:  # type: ignore[override]
        """The body."""
        return self._body
