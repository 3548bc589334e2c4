"""Pure: how an answer's status is read where the platform has no rules of its own."""

from __future__ import annotations

from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

from audit.shipping.platforms.exchange import Answer, BatchRefused, Delivered, DestinationRefused, RetryLater, Verdict
from gateway.lib import clock
from gateway.lib.sentences import sentence

EXCERPT_CHARACTERS: Final = 200
LONGEST_WISH_S: Final = 3600.0
WEB_PAGE: Final = sentence("This address returns a web page instead of the platform’s API.")
_TOO_EARLY_OR_BUSY = frozenset({408, 425, 429})
_OF_THE_RECORDS = frozenset({400, 413, 422})


def is_web_page(answer: Answer) -> bool:
    """A sign-in page, or one of a proxy: it answers 200 too, and keeps nothing."""
    return answer.body.lstrip().startswith(b"<")


def verdict_of_status(answer: Answer) -> Verdict:
    if 200 <= answer.status < 300:
        return RetryLater(WEB_PAGE) if is_web_page(answer) else Delivered()
    if answer.status in _TOO_EARLY_OR_BUSY or answer.status >= 500:
        return RetryLater(words_of(answer), retry_after_s(answer))
    if answer.status in _OF_THE_RECORDS:
        return BatchRefused(words_of(answer))
    return DestinationRefused(words_of(answer))


def words_of(answer: Answer) -> str:
    """The status and the beginning of the body, as it came: it is cleaned before it is shown or stored."""
    if 300 <= answer.status < 400:
        return f"{answer.status}: the address redirects, which is not followed"
    excerpt = answer.body[: 4 * EXCERPT_CHARACTERS].decode(errors="replace")[:EXCERPT_CHARACTERS].strip()
    return f"{answer.status}: {excerpt}" if excerpt else f"{answer.status}, without a text"


def retry_after_s(answer: Answer, now: datetime | None = None) -> float | None:
    """Retry-After in seconds, from either form; None without a usable one."""
    raw = answer.headers.get("Retry-After", "").strip()
    if raw.isascii() and raw.isdigit():
        return min(float(raw[:9]), LONGEST_WISH_S)
    try:
        wait = (parsedate_to_datetime(raw) - (now or clock.now())).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(wait, 0.0), LONGEST_WISH_S)
