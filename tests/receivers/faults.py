"""The ways in which a receiver can be told to answer otherwise than it should."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime


@dataclass(frozen=True)
class Fault:
    """`keeps`: the events are kept although the sender is not told so, as when an answer is lost on its way."""

    kind: str
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None  # None: in the platform's own words
    seconds: float = 0.0
    places: tuple[int, ...] = ()
    keeps: bool = False

    def but_keeps(self) -> Fault:
        """The same after the events were kept: sent again, they arrive twice."""
        return replace(self, keeps=True)

    @classmethod
    def answers(cls, status: int, *, retry_after: int | datetime | None = None, body: bytes | None = None) -> Fault:
        """This status, with Retry-After in seconds or as a date when asked."""
        headers = {}
        if isinstance(retry_after, datetime):
            headers["Retry-After"] = format_datetime(retry_after.astimezone(UTC), usegmt=True)
        elif retry_after is not None:
            headers["Retry-After"] = str(retry_after)
        return cls("answers", status, headers, body)

    @classmethod
    def refuses(cls, *places: int, status: int = 400) -> Fault:
        """These places of the batch are refused in the platform's way, the others are kept."""
        return cls("refuses", status, places=places)

    @classmethod
    def garbage(cls, status: int = 200, body: bytes = b"<html>\x00\xff not what was asked") -> Fault:
        return cls("answers", status, {"Content-Type": "text/html"}, body)

    @classmethod
    def empty(cls, status: int = 200) -> Fault:
        return cls("answers", status, body=b"")

    @classmethod
    def redirects(cls, status: int = 307) -> Fault:
        """To another path of this receiver, where a request is a violation."""
        return cls("redirects", status)

    @classmethod
    def not_http(cls) -> Fault:
        return cls("raw", body=b"220 mail.example.com ESMTP\r\n")

    @classmethod
    def closes(cls) -> Fault:
        """The connection is closed without an answer."""
        return cls("raw", body=b"")

    @classmethod
    def never_answers(cls) -> Fault:
        """Until the receiver is closed."""
        return cls("hangs")

    @classmethod
    def slow(cls, seconds: float) -> Fault:
        """The right answer, late."""
        return cls("slow", seconds=seconds, keeps=True)
