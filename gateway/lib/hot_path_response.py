from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse

from gateway.lib.shared_body import SharedBody


class HotPathResponse(HttpResponse):
    """200, a body of bytes, and headers in a plain mapping: no cookies, no charset, nothing to close."""

    def __init__(self, body: bytes, *, headers: dict[str, str]) -> None:
        # HttpResponse.__init__ is not called: it takes longer than the rest of the view.
        self.headers = headers  # type: ignore[assignment]
        self._body = body

    @property
    def content(self) -> bytes:  # type: ignore[override]
        return self._body


class SharedBodyResponse(HotPathResponse):
    """A large body in parts that other responses may share. Parts are sent one after the other, and never joined."""

    def __init__(self, parts: Sequence[bytes | SharedBody], *, headers: dict[str, str]) -> None:
        super().__init__(b"", headers=headers)
        self.parts = parts

    @property
    def content(self) -> bytes:  # type: ignore[override]
        return b"".join(map(bytes, self.parts))
